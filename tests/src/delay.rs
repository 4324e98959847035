//! A long link: a TCP proxy before one broker that delays every byte, in both directions, and slows none.

use std::{collections::VecDeque, net::TcpListener as StdListener, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Runtime,
    sync::{Mutex, Notify, Semaphore},
    time::{Instant, sleep_until},
};

use crate::proxy::Route;

/// Bytes on their way in one direction of one connection. More than the link holds at any rate that is measured, so that it
/// is the client's own windows that count.
const UNDER_WAY_BYTES_MAX: usize = 64 << 20;
const CHUNK_BYTES: usize = 256 << 10;

/// A running link; it ends with this value.
#[derive(Debug)]
pub struct LongLink {
    bootstrap: String,
    runtime: Option<Runtime>,
}

impl LongLink {
    /// Listens on every route; what comes in goes on after `delay`.
    ///
    /// # Errors
    /// When an address is taken.
    pub fn start(routes: Vec<Route>, delay: Duration) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listens: Vec<&str> = routes.iter().map(|route| route.listen.as_str()).collect();
        let bootstrap = listens.join(",");
        for route in routes {
            let listener =
                StdListener::bind(&route.listen).with_context(|| format!("listen on {}", route.listen))?;
            listener.set_nonblocking(true)?;
            runtime.spawn(async move { accept(listener, route.broker, delay).await });
        }
        Ok(Self { bootstrap, runtime: Some(runtime) })
    }

    /// Its addresses as a `bootstrap.servers` list.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.bootstrap.clone()
    }
}

impl Drop for LongLink {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: StdListener, broker: String, delay: Duration) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    while let Ok((client, _)) = listener.accept().await {
        let Ok(upstream) = TcpStream::connect(&broker).await else { continue };
        let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
        let (from_client, to_client) = client.into_split();
        let (from_broker, to_broker) = upstream.into_split();
        tokio::spawn(async move {
            tokio::select! {
                _ = pass(from_client, to_broker, delay) => {}
                _ = pass(from_broker, to_client, delay) => {}
            }
        });
    }
}

/// Bytes that wait for their time; an empty chunk is the end of the stream.
#[derive(Debug)]
struct UnderWay {
    chunks: Mutex<VecDeque<(Instant, Vec<u8>)>>,
    arrived: Notify,
    room: Semaphore,
}

async fn pass(from: OwnedReadHalf, to: OwnedWriteHalf, delay: Duration) -> io::Result<()> {
    let under_way = Arc::new(UnderWay {
        chunks: Mutex::default(),
        arrived: Notify::new(),
        room: Semaphore::new(UNDER_WAY_BYTES_MAX),
    });
    tokio::select! {
        ended = take(from, Arc::clone(&under_way), delay) => ended,
        ended = give(to, under_way) => ended,
    }
}

async fn take(mut from: OwnedReadHalf, under_way: Arc<UnderWay>, delay: Duration) -> io::Result<()> {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let is_end = from.read_buf(&mut chunk).await? == 0;
        let bytes = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        if let Ok(room) = under_way.room.acquire_many(bytes).await {
            room.forget();
        }
        under_way.chunks.lock().await.push_back((Instant::now() + delay, chunk));
        under_way.arrived.notify_one();
        if is_end {
            // What is under way still arrives, and the end behind it.
            return std::future::pending().await;
        }
    }
}

async fn give(mut to: OwnedWriteHalf, under_way: Arc<UnderWay>) -> io::Result<()> {
    loop {
        let next = under_way.chunks.lock().await.pop_front();
        let Some((due, chunk)) = next else {
            under_way.arrived.notified().await;
            continue;
        };
        sleep_until(due).await;
        if chunk.is_empty() {
            return to.shutdown().await;
        }
        to.write_all(&chunk).await?;
        under_way.room.add_permits(chunk.len());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
        thread,
    };

    use super::*;
    use crate::{deadline::now, real::ports::Port};

    #[test]
    fn everything_arrives_in_order_and_late() {
        let broker = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = broker.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let (mut stream, _) = broker.accept().unwrap();
            let mut all = vec![0; 3_000_000];
            stream.read_exact(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let listen = Port::reserve().unwrap().address();
        let delay = Duration::from_millis(30);
        let link = LongLink::start(vec![Route { listen, broker: address }], delay).unwrap();
        let mut client = TcpStream::connect(link.bootstrap()).unwrap();
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| number.to_be_bytes()[3]).collect();
        let begun = now();
        client.write_all(&sent).unwrap();
        let mut back = vec![0; sent.len()];
        client.read_exact(&mut back).unwrap();
        assert!(begun.elapsed() >= delay * 2);
        assert!(back == sent, "other bytes came back");
    }
}
