//! For tests: the broker's end of a connection, byte by byte, and small brokers on TCP that tell a shared story.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use bytes::{Buf, BufMut, Bytes};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};
use twinlog_protocol::versions::Api;

use crate::machine::metadata::HostPort;

/// A request as a broker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::io) struct Seen {
    pub(in crate::io) api_key: i16,
    pub(in crate::io) version: i16,
    pub(in crate::io) correlation_id: i32,
    /// All behind the correlation id: rest of the header, body.
    pub(in crate::io) rest: Bytes,
}

/// Reads one request; nothing when the client has closed.
pub(in crate::io) async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> Option<Seen> {
    let length = socket.read_i32().await.ok()?;
    let mut frame = vec![0; usize::try_from(length).expect("a length")];
    socket.read_exact(&mut frame).await.ok()?;
    let mut frame = Bytes::from(frame);
    let (api_key, version, correlation_id) = (frame.get_i16(), frame.get_i16(), frame.get_i32());
    Some(Seen { api_key, version, correlation_id, rest: frame })
}

/// A whole answer as bytes.
pub(in crate::io) fn answer(correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(i32::try_from(body.len() + 4).expect("a short body"));
    out.put_i32(correlation_id);
    out.put_slice(body);
    out
}

/// ApiVersions as a broker answers that knows version 0 of it only, and these ranges.
pub(in crate::io) fn api_versions_body(version: i16, listed: &[(Api, i16, i16)]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i16(if version == 0 { 0 } else { 35 });
    out.put_i32(i32::try_from(listed.len()).unwrap());
    for (api, min, max) in listed {
        out.put_i16(api.key());
        out.put_i16(*min);
        out.put_i16(*max);
    }
    out
}

/// What the fake brokers answer with: inflexible versions, which are easy to write.
pub(in crate::io) const SPOKEN: [(Api, i16, i16); 3] =
    [(Api::ApiVersions, 0, 0), (Api::Metadata, 0, 8), (Api::InitProducerId, 0, 1)];

/// InitProducerId's answer with this throttle time and producer id.
pub(in crate::io) fn producer_id_body(throttle_time_ms: i32, producer_id: i64) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(throttle_time_ms);
    out.put_i16(0);
    out.put_i64(producer_id);
    out.put_i16(0);
    out
}

/// What the brokers of a fake cluster say about it.
#[derive(Debug, Clone, Default)]
pub(in crate::io) struct Story {
    pub(in crate::io) cluster_id: &'static str,
    pub(in crate::io) controller: i32,
    pub(in crate::io) brokers: Vec<(i32, HostPort)>,
    /// Topics of one partition: name, leader, leader epoch.
    pub(in crate::io) topics: Vec<(&'static str, i32, i32)>,
    /// All requests so far but ApiVersions: the node that was asked, the API.
    pub(in crate::io) seen: Vec<(i32, Api)>,
    /// Connections accepted so far, and those still open.
    pub(in crate::io) accepted: usize,
    pub(in crate::io) open: usize,
}

impl Story {
    pub(in crate::io) fn count(&self, api: Api) -> usize {
        self.seen.iter().filter(|(_, seen)| *seen == api).count()
    }

    fn metadata_body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_i32(0);
        put_array(&mut out, &self.brokers, |out, (node, server)| {
            out.put_i32(*node);
            put_string(out, &server.host);
            out.put_i32(i32::from(server.port));
            out.put_i16(-1);
        });
        put_string(&mut out, self.cluster_id);
        out.put_i32(self.controller);
        put_array(&mut out, &self.topics, |out, (name, leader, epoch)| {
            out.put_i16(0);
            put_string(out, name);
            out.put_u8(0);
            put_array(out, &[(leader, epoch)], |out, (leader, epoch)| {
                out.put_i16(0);
                out.put_i32(0);
                out.put_i32(**leader);
                out.put_i32(**epoch);
                for _replicas_isr_offline in 0..3 {
                    put_array(out, &[leader], |out, leader| out.put_i32(***leader));
                }
            });
            out.put_i32(i32::MIN);
        });
        out.put_i32(i32::MIN);
        out
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    out.put_i16(i16::try_from(text.len()).unwrap());
    out.put_slice(text.as_bytes());
}

fn put_array<T>(out: &mut Vec<u8>, items: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    out.put_i32(i32::try_from(items.len()).unwrap());
    items.iter().for_each(|item| put(out, item));
}

/// A broker on a port of 127.0.0.1; gone with all its connections when dropped.
pub(in crate::io) struct FakeBroker {
    pub(in crate::io) server: HostPort,
    task: AbortHandle,
}

impl Drop for FakeBroker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeBroker {
    /// Starts a broker that tells the story.
    pub(in crate::io) async fn start(node: i32, story: &Arc<Mutex<Story>>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let server = HostPort::new("127.0.0.1", listener.local_addr().unwrap().port());
        let story = Arc::clone(story);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                story.lock().unwrap().accepted += 1;
                connections.spawn(serve(node, socket, Arc::clone(&story)));
            }
        });
        FakeBroker { server, task: task.abort_handle() }
    }

    /// Starts a broker and makes it a part of the story.
    pub(in crate::io) async fn join(node: i32, story: &Arc<Mutex<Story>>) -> Self {
        let broker = Self::start(node, story).await;
        let mut story = story.lock().unwrap();
        story.brokers.retain(|(other, _)| *other != node);
        story.brokers.push((node, broker.server.clone()));
        broker
    }
}

/// Counts one connection as open.
struct Open(Arc<Mutex<Story>>);

impl Open {
    fn new(story: &Arc<Mutex<Story>>) -> Self {
        story.lock().unwrap().open += 1;
        Open(Arc::clone(story))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().unwrap().open -= 1;
    }
}

async fn serve(node: i32, mut socket: TcpStream, story: Arc<Mutex<Story>>) {
    let _open = Open::new(&story);
    while let Some(request) = read_request(&mut socket).await {
        let api = Api::ALL.into_iter().find(|api| api.key() == request.api_key).expect("a known API");
        let body = {
            let mut story = story.lock().unwrap();
            match api {
                Api::ApiVersions => api_versions_body(request.version, &SPOKEN),
                _ => {
                    story.seen.push((node, api));
                    match api {
                        Api::Metadata => story.metadata_body(),
                        Api::InitProducerId => producer_id_body(0, i64::from(node)),
                        other => panic!("the fake broker does not speak {other}"),
                    }
                }
            }
        };
        if socket.write_all(&answer(request.correlation_id, &body)).await.is_err() {
            return;
        }
    }
}

/// Answers the handshake of a scripted connection.
pub(in crate::io) async fn shake_hands(socket: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    for _newest_then_oldest in 0..2 {
        let request = read_request(socket).await.expect("ApiVersions");
        assert_eq!(request.api_key, Api::ApiVersions.key());
        let body = api_versions_body(request.version, &SPOKEN);
        socket.write_all(&answer(request.correlation_id, &body)).await.expect("the client reads");
    }
}
