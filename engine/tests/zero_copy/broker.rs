//! A broker in threads of its own, so that a count of our thread's allocations does not see it: it gives out one log
//! without end and takes every batch.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bytes::{Buf, BufMut};
use twinlog_protocol::batch::BatchView;
use twinlog_protocol::versions::Api;

use crate::answers::{FETCH_VERSION, FetchAnswer, PRODUCE_VERSION, produce_body};

/// A listening broker; its threads end with the process.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) address: SocketAddr,
    /// Bytes of the batches that were taken, headers included.
    pub(crate) taken_bytes: Arc<AtomicU64>,
}

impl Broker {
    pub(crate) fn start(answer: FetchAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let taken_bytes = Arc::default();
        let taken = Arc::clone(&taken_bytes);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = Connection {
                    stream: stream.unwrap(),
                    answer: answer.clone(),
                    fetch_offset: 0,
                    log_ends: HashMap::new(),
                    taken: Arc::clone(&taken),
                };
                thread::spawn(move || connection.serve());
            }
        });
        Self { address, taken_bytes }
    }
}

struct Connection {
    stream: TcpStream,
    answer: FetchAnswer,
    fetch_offset: i64,
    log_ends: HashMap<i32, i64>,
    taken: Arc<AtomicU64>,
}

impl Connection {
    fn serve(mut self) {
        self.stream.set_nodelay(true).unwrap();
        let mut request = Vec::new();
        while self.read(&mut request) {
            let mut rest = request.as_slice();
            let (api_key, version, correlation_id) = (rest.get_i16(), rest.get_i16(), rest.get_i32());
            let client_id_bytes = usize::try_from(rest.get_i16()).unwrap();
            rest.advance(client_id_bytes);
            match Api::ALL.into_iter().find(|api| api.key() == api_key) {
                Some(Api::ApiVersions) => self.write(correlation_id, &[], &api_versions_body(version)),
                Some(Api::Fetch) => {
                    self.answer.move_to(self.fetch_offset);
                    self.fetch_offset += self.answer.records_per_partition();
                    let body = std::mem::take(&mut self.answer.body);
                    self.write(correlation_id, &[0], &body);
                    self.answer.body = body;
                }
                Some(Api::Produce) => {
                    let body = self.append(rest);
                    self.write(correlation_id, &[0], &body);
                }
                other => panic!("nobody should ask for {other:?}"),
            }
        }
    }

    /// The next request behind its length; false when the client has closed.
    fn read(&mut self, request: &mut Vec<u8>) -> bool {
        let mut prefix = [0; 4];
        if self.stream.read_exact(&mut prefix).is_err() {
            return false;
        }
        request.resize(u32::from_be_bytes(prefix) as usize, 0);
        self.stream.read_exact(request).is_ok()
    }

    fn write(&mut self, correlation_id: i32, header_tags: &[u8], body: &[u8]) {
        let length = i32::try_from(4 + header_tags.len() + body.len()).unwrap();
        let head = [&length.to_be_bytes(), &correlation_id.to_be_bytes(), header_tags].concat();
        // The client may be gone.
        let _ = self.stream.write_all(&head).and_then(|()| self.stream.write_all(body));
    }

    /// Takes a Produce request of one batch, as a broker does: its CRC has to be right.
    fn append(&mut self, mut rest: &[u8]) -> Vec<u8> {
        rest.advance(1); // header tags
        rest.advance(1 + 2 + 4); // transactional id, acks, timeout
        assert_eq!(rest.get_u8(), 2, "one topic");
        rest.advance(16);
        assert_eq!(rest.get_u8(), 2, "one partition");
        let partition = rest.get_i32();
        let bytes = uvarint(&mut rest) - 1;
        let batch = BatchView::parse(rest[..bytes].to_vec().into()).expect("a batch");
        batch.check_crc().expect("the patched CRC fits the payload");
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        let log_end = self.log_ends.entry(partition).or_default();
        let base_offset = *log_end;
        *log_end += i64::from(batch.header().record_count);
        produce_body(partition, base_offset)
    }
}

/// ApiVersions as a broker answers that knows its version 0 only.
fn api_versions_body(version: i16) -> Vec<u8> {
    let spoken =
        [(Api::Produce, PRODUCE_VERSION), (Api::Fetch, FETCH_VERSION), (Api::ApiVersions, 0)].as_slice();
    let mut body = Vec::new();
    body.put_i16(if version == 0 { 0 } else { 35 });
    body.put_i32(i32::try_from(spoken.len()).unwrap());
    for (api, version) in spoken {
        body.put_i16(api.key());
        body.put_i16(*version);
        body.put_i16(*version);
    }
    body
}

fn uvarint(bytes: &mut &[u8]) -> usize {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes.get_u8();
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}
