//! Captures the fixtures of `tests/fixtures/batches/` from a running broker; its README says how to run this.
//!
//! Fetches the topics that `WriteFixtures.java` wrote, in each version that the broker and this codec speak, forwards
//! every batch to a topic `copy-<topic>`, packs the records anew into `repacked-<topic>`, and saves the answers' bodies.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::path::Path;

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse, RequestHeader,
    TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use twinlog_protocol::batch::{BatchView, Compression, Entry, ProducerStamp, batches, rewrite};
use twinlog_protocol::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, IsolationLevel, fetch_frame,
};
use twinlog_protocol::produce::{Gather, ProducePartition, ProduceResponse, produce_frame};
use twinlog_protocol::record::{BatchBuilder, records};
use twinlog_protocol::{fetch, produce};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TOPICS: [&str; 6] = ["none", "gzip", "snappy", "lz4", "zstd", "transactions"];
const NO_PRODUCER: ProducerStamp = ProducerStamp { producer_id: -1, producer_epoch: -1, base_sequence: -1 };

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, folder] = &arguments[..] else {
        return Err("usage: capture_fixtures HOST:PORT FOLDER".into());
    };
    let mut broker = Broker { stream: TcpStream::connect(bootstrap)? };
    let folder = Path::new(folder);
    let (fetch_versions, produce_versions) = broker.versions()?;
    println!("Fetch {fetch_versions:?}, Produce {produce_versions:?}");
    let newest = *fetch_versions.end();
    for topic in TOPICS {
        let records = broker.log(newest, topic)?;
        std::fs::write(folder.join(format!("{topic}.bin")), &records)?;
        broker.forward(*produce_versions.end(), topic, &records)?;
    }
    for version in fetch_versions {
        let asked = asked_for(&mut broker)?;
        let body = broker.fetch(version, asked)?;
        std::fs::write(folder.join(format!("fetch-v{version}.body")), body)?;
    }
    for version in produce_versions {
        let frame = produced(&mut broker, version)?;
        let body = broker.call(frame, version >= 9)?;
        ProduceResponse::decode(version, body.clone())?;
        std::fs::write(folder.join(format!("produce-v{version}.body")), body)?;
    }
    Ok(())
}

/// Topics with all that an answer can hold: records, aborted transactions, a fenced epoch, a diverging one, no such topic.
fn asked_for(broker: &mut Broker) -> Outcome<Vec<FetchTopic>> {
    let mut topics = Vec::new();
    for topic in ["none", "transactions", "gzip", "zstd"] {
        topics.push(broker_topic(broker, topic)?);
    }
    topics[2].partitions[0].current_leader_epoch = 0;
    topics[3].partitions[0].fetch_offset = 9;
    topics[3].partitions[0].last_fetched_epoch = 0;
    let partitions = topics[0].partitions.clone();
    topics.push(FetchTopic { name: "no such topic".to_owned(), id: 7, partitions });
    Ok(topics)
}

/// A batch that lands, one with a wrong CRC, one whose record a compacted topic refuses, one for nobody.
fn produced(broker: &mut Broker, version: i16) -> Outcome<Gather> {
    let mut builder = BatchBuilder::new();
    builder.push(1_700_000_000_000, None, Some(Bytes::from_static(b"no key")), Vec::new())?;
    let good = rewrite(&builder.build()?, NO_PRODUCER);
    let mut bad = good.clone();
    bad.head[17] ^= 1;
    let mut partitions = Vec::new();
    for (topic, batch) in [("produced", &good), ("damaged", &bad), ("compacted", &good)] {
        let topic_id = broker.topic_id(topic)?;
        partitions.push(ProducePartition {
            topic: topic.into(),
            topic_id,
            partition: 0,
            batch: batch.clone(),
        });
    }
    let topic = "no such topic".into();
    partitions.push(ProducePartition { topic, topic_id: 7, partition: 3, batch: good });
    Ok(produce_frame(version, 5, "capture", -1, 5_000, &partitions)?)
}

fn broker_topic(broker: &mut Broker, name: &str) -> Outcome<FetchTopic> {
    let partition = FetchPartition {
        partition: 0,
        current_leader_epoch: -1,
        fetch_offset: 0,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        partition_max_bytes: 1 << 20,
    };
    Ok(FetchTopic { name: name.to_owned(), id: broker.topic_id(name)?, partitions: vec![partition] })
}

struct Broker {
    stream: TcpStream,
}

impl Broker {
    fn versions(&mut self) -> Outcome<(RangeInclusive<i16>, RangeInclusive<i16>)> {
        let mut body = self.message(ApiKey::ApiVersions, 0, &ApiVersionsRequest::default(), false)?;
        let answer = ApiVersionsResponse::decode(&mut body, 0)?;
        let common = |key: ApiKey, ours: RangeInclusive<i16>| match answer
            .api_keys
            .iter()
            .find(|api| api.api_key == key as i16)
        {
            Some(api) => Ok(api.min_version.max(*ours.start())..=api.max_version.min(*ours.end())),
            None => Err(format!("the broker does not know {key:?}")),
        };
        Ok((common(ApiKey::Fetch, fetch::VERSIONS)?, common(ApiKey::Produce, produce::VERSIONS)?))
    }

    fn topic_id(&mut self, name: &str) -> Outcome<u128> {
        let name = TopicName(StrBytes::from_string(name.to_owned()));
        let topic = MetadataRequestTopic::default().with_name(Some(name));
        let request =
            MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true);
        for _ in 0..50 {
            let mut body = self.message(ApiKey::Metadata, 10, &request, true)?;
            let answer = MetadataResponse::decode(&mut body, 10)?;
            if let Some(topic) = answer.topics.first().filter(|topic| topic.error_code == 0) {
                return Ok(topic.topic_id.as_u128());
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Err("the topic does not come up".into())
    }

    fn fetch(&mut self, version: i16, topics: Vec<FetchTopic>) -> Outcome<Bytes> {
        let isolation_level = IsolationLevel::ReadCommitted;
        let request = FetchRequest { isolation_level, ..FetchRequest::full(500, 1 << 20, topics) };
        let body = self.call(fetch_frame(version, 3, "capture", &request)?, version >= 12)?;
        FetchResponse::decode(version, body.clone())?;
        Ok(body)
    }

    /// All batches of a topic, which has one partition.
    fn log(&mut self, version: i16, name: &str) -> Outcome<Bytes> {
        let mut asked = broker_topic(self, name)?;
        let mut log = BytesMut::new();
        loop {
            let body = self.fetch(version, vec![asked.clone()])?;
            let answer = FetchResponse::decode(version, body)?;
            let Some(partition) = answer.partitions.first().filter(|partition| partition.error_code == 0)
            else {
                return Err(format!("{answer:?}").into());
            };
            log.extend_from_slice(&partition.records);
            for entry in batches(partition.records.clone()) {
                let Entry::Batch(view) = entry? else { return Err("an old format".into()) };
                asked.partitions[0].fetch_offset = view.header().next_offset();
            }
            if asked.partitions[0].fetch_offset >= partition.high_watermark {
                return Ok(log.freeze());
            }
        }
    }

    /// Forwards the batches as they are, then packs their records anew.
    fn forward(&mut self, version: i16, topic: &str, fetched: &Bytes) -> Outcome<()> {
        for entry in batches(fetched.clone()) {
            let Entry::Batch(view) = entry? else { return Err("an old format".into()) };
            if view.header().attributes.is_control() {
                continue;
            }
            self.produce(version, &format!("copy-{topic}"), &view)?;
            self.produce(version, &format!("repacked-{topic}"), &repacked(&view)?)?;
        }
        Ok(())
    }

    fn produce(&mut self, version: i16, topic: &str, view: &BatchView) -> Outcome<()> {
        let (topic, topic_id) = (topic.into(), self.topic_id(topic)?);
        let batch = rewrite(view, NO_PRODUCER);
        let frame = produce_frame(
            version,
            4,
            "capture",
            -1,
            5_000,
            &[ProducePartition { topic, topic_id, partition: 0, batch }],
        )?;
        let answer = ProduceResponse::decode(version, self.call(frame, version >= 9)?)?;
        match answer.partitions.first() {
            Some(partition) if partition.error_code == 0 => Ok(()),
            _ => Err(format!("{answer:?}").into()),
        }
    }

    fn message<M: Encodable>(
        &mut self,
        key: ApiKey,
        version: i16,
        message: &M,
        flexible: bool,
    ) -> Outcome<Bytes> {
        let mut body = BytesMut::new();
        let header = RequestHeader::default()
            .with_request_api_key(key as i16)
            .with_request_api_version(version)
            .with_client_id(Some(StrBytes::from_static_str("capture")));
        header.encode(&mut body, key.request_header_version(version))?;
        message.encode(&mut body, version)?;
        let length = Bytes::from(u32::try_from(body.len())?.to_be_bytes().to_vec());
        self.call([length, body.freeze()].into_iter().collect(), flexible)
    }

    /// The body of the answer: behind the correlation id and, in response header 1, an empty list of tags.
    fn call(&mut self, mut frame: Gather, flexible: bool) -> Outcome<Bytes> {
        while frame.has_remaining() {
            let written = self.stream.write(frame.chunk())?;
            frame.advance(written);
        }
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut answer = vec![0; usize::try_from(u32::from_be_bytes(length))?];
        self.stream.read_exact(&mut answer)?;
        Ok(Bytes::from(answer).slice(if flexible { 5 } else { 4 }..))
    }
}

/// The same records in a batch of our own making, under the codec that it had.
fn repacked(view: &BatchView) -> Outcome<BatchView> {
    let header = view.header();
    let mut builder = BatchBuilder::new().compression(header.attributes.compression()?);
    for record in records(view, 1 << 20)? {
        let record = record?;
        let timestamp_ms = header.base_timestamp + record.timestamp_delta;
        builder.push(timestamp_ms, record.key, record.value, record.headers)?;
    }
    let repacked = builder.build()?;
    if header.attributes.compression()? == Compression::None && repacked.body() != view.body() {
        return Err("records that are not packed should be the same bytes again".into());
    }
    Ok(repacked)
}
