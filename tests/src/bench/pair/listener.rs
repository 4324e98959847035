//! Connections of a made-up broker: a thread for each, one request after the other, as brokers work them.

use std::{
    io,
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use anyhow::{Context, Result};
use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::{
    messages::{
        ApiKey, CreateTopicsRequest, DescribeConfigsRequest, DescribeProducersRequest, FetchRequest,
        IncrementalAlterConfigsRequest, InitProducerIdRequest, ListOffsetsRequest, MetadataRequest,
        OffsetForLeaderEpochRequest, ResponseHeader,
    },
    protocol::{Decodable, Encodable},
};
use twinlog_protocol::produce::Gather;

use super::{
    fetch::fetch,
    inlet::Inlet,
    log::Broker,
    produce::produce,
    questions::{
        api_versions, create_topics, describe_configs, describe_producers, incremental_alter_configs,
        init_producer_id, list_offsets, metadata, offset_for_leader_epoch,
    },
};
use crate::bench::vectored::write_all;

/// Takes connections from now on.
pub(super) fn listen(broker: &Arc<Broker>) -> Result<()> {
    let address = broker.address();
    let listener = TcpListener::bind(&address).with_context(|| format!("listen on {address}"))?;
    let broker = Arc::clone(broker);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let broker = Arc::clone(&broker);
            // A client that goes away ends its thread, and so does one that says what nobody understands: it will see
            // that its connection is closed.
            thread::spawn(move || serve(&broker, stream));
        }
    });
    Ok(())
}

/// What stands in front of a request.
struct Head {
    api: ApiKey,
    version: i16,
    correlation_id: i32,
}

fn serve(broker: &Broker, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut inlet = Inlet::new(stream.try_clone()?);
    loop {
        inlet.next_frame()?;
        let head = head(&mut inlet)?;
        let answer = match head.api {
            ApiKey::Produce => encoded(&head, &produce(broker, &mut inlet)?)?,
            ApiKey::Fetch => {
                let request = FetchRequest::decode(&mut Bytes::from(inlet.rest()?), head.version);
                fetch(broker, head.correlation_id, &request.map_err(io::Error::other)?)
            }
            _ => question(broker, &head, Bytes::from(inlet.rest()?))?,
        };
        write_all(&mut stream, answer)?;
    }
}

fn head(inlet: &mut Inlet) -> io::Result<Head> {
    let (key, version) = (i16::from_be_bytes(inlet.array()?), i16::from_be_bytes(inlet.array()?));
    let correlation_id = i32::from_be_bytes(inlet.array()?);
    let client_id_bytes = i16::from_be_bytes(inlet.array()?);
    inlet.skip(usize::try_from(client_id_bytes).unwrap_or_default())?;
    let api = ApiKey::try_from(key).map_err(|()| io::ErrorKind::InvalidData)?;
    if api.request_header_version(version) >= 2 && inlet.uvarint()? != 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(Head { api, version, correlation_id })
}

fn question(broker: &Broker, head: &Head, body: Bytes) -> io::Result<Gather> {
    match head.api {
        ApiKey::ApiVersions => encoded(head, &api_versions()),
        ApiKey::Metadata => asked::<MetadataRequest, _>(head, body, |request| metadata(broker, request)),
        ApiKey::ListOffsets => {
            asked::<ListOffsetsRequest, _>(head, body, |request| list_offsets(broker, request))
        }
        ApiKey::CreateTopics => {
            asked::<CreateTopicsRequest, _>(head, body, |request| create_topics(broker, request))
        }
        ApiKey::DescribeConfigs => asked::<DescribeConfigsRequest, _>(head, body, describe_configs),
        ApiKey::IncrementalAlterConfigs => {
            asked::<IncrementalAlterConfigsRequest, _>(head, body, incremental_alter_configs)
        }
        ApiKey::InitProducerId => asked::<InitProducerIdRequest, _>(head, body, |_| init_producer_id(broker)),
        ApiKey::OffsetForLeaderEpoch => asked::<OffsetForLeaderEpochRequest, _>(head, body, |request| {
            offset_for_leader_epoch(broker, request)
        }),
        ApiKey::DescribeProducers => {
            asked::<DescribeProducersRequest, _>(head, body, |request| describe_producers(broker, request))
        }
        other => Err(io::Error::other(format!("{other:?} is not spoken here"))),
    }
}

fn asked<Q: Decodable, A: Encodable>(
    head: &Head,
    mut body: Bytes,
    answer: impl FnOnce(&Q) -> A,
) -> io::Result<Gather> {
    let request = Q::decode(&mut body, head.version).map_err(io::Error::other)?;
    encoded(head, &answer(&request))
}

fn encoded(head: &Head, answer: &impl Encodable) -> io::Result<Gather> {
    let mut out = BytesMut::new();
    out.put_i32(0);
    ResponseHeader::default()
        .with_correlation_id(head.correlation_id)
        .encode(&mut out, head.api.response_header_version(head.version))
        .map_err(io::Error::other)?;
    answer.encode(&mut out, head.version).map_err(io::Error::other)?;
    let length = u32::try_from(out.len() - 4).map_err(io::Error::other)?;
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok([out.freeze()].into_iter().collect())
}
