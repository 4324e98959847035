//! A TCP proxy that knows where Kafka's frames begin: it swallows Produce answers, holds Produce requests, delays or
//! cuts, and otherwise passes every byte as it is. Brokers advertise its addresses, so it rewrites nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    net::TcpListener as StdListener,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    io::{self, AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Runtime,
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::lies::{Lie, Lies};

const PRODUCE: i16 = 0;

/// What a slow link carries of one connection before it is another one's turn.
const TURN_BYTES: u64 = 16_384;
const PACKET_BYTES: u64 = 1_400;

/// One proxied broker.
#[derive(Clone, Debug)]
pub struct Route {
    /// Where clients connect: the broker advertises it.
    pub listen: String,
    /// Where the broker listens.
    pub broker: String,
}

/// A running proxy with one listener per broker; it ends with this value.
#[derive(Debug)]
pub struct Proxy {
    bootstrap: String,
    faults: Arc<Faults>,
    runtime: Option<Runtime>,
}

/// What goes wrong at present, shared by all connections.
#[derive(Debug)]
struct Faults {
    /// Every n-th Produce answer is swallowed and its connection closed; 0: none.
    drop_every: AtomicU64,
    delay_ms: AtomicU64,
    /// Bytes that brokers get in a second, from all connections; 0: no limit.
    bytes_per_second: AtomicU64,
    /// When the bytes so far have gone by at that speed.
    free_at: Mutex<Option<Instant>>,
    produce_answers: AtomicU64,
    dropped: AtomicU64,
    /// Produce requests that wait at present.
    held: AtomicU64,
    hold_produce: watch::Sender<bool>,
    /// How many requests went by, by API key.
    requests: Mutex<BTreeMap<i16, u64>>,
    /// Counts the cuts: a connection ends when it changes.
    cut: watch::Sender<u64>,
    lies: Lies,
}

impl Proxy {
    /// Listens on every route.
    ///
    /// # Errors
    /// When an address is taken.
    pub fn start(routes: Vec<Route>) -> Result<Self> {
        let faults = Arc::new(Faults {
            drop_every: AtomicU64::new(0),
            delay_ms: AtomicU64::new(0),
            bytes_per_second: AtomicU64::new(0),
            free_at: Mutex::default(),
            produce_answers: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            held: AtomicU64::new(0),
            hold_produce: watch::Sender::new(false),
            requests: Mutex::default(),
            cut: watch::Sender::new(0),
            lies: Lies::default(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let bootstrap: Vec<String> = routes.iter().map(|route| route.listen.clone()).collect();
        for route in routes {
            let listener =
                StdListener::bind(&route.listen).with_context(|| format!("listen on {}", route.listen))?;
            listener.set_nonblocking(true)?;
            let faults = Arc::clone(&faults);
            runtime.spawn(async move { accept(listener, route.broker, faults).await });
        }
        Ok(Self { bootstrap: bootstrap.join(","), faults, runtime: Some(runtime) })
    }

    /// The proxy's addresses as a `bootstrap.servers` list.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        self.bootstrap.clone()
    }

    /// From now on every `n`-th Produce answer is lost together with its connection; 0 ends it.
    pub fn drop_every_nth_produce_answer(&self, n: u64) {
        self.faults.drop_every.store(n, Ordering::Relaxed);
    }

    /// How many Produce answers were lost so far.
    #[must_use]
    pub fn dropped_answers(&self) -> u64 {
        self.faults.dropped.load(Ordering::Relaxed)
    }

    /// Delays each frame, in both directions.
    pub fn delay_each_frame(&self, delay: Duration) {
        let ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.faults.delay_ms.store(ms, Ordering::Relaxed);
    }

    /// Brokers get so many bytes in a second at most, all together; 0 ends the limit.
    pub fn limit_bytes_per_second(&self, bytes: u64) {
        self.faults.bytes_per_second.store(bytes, Ordering::Relaxed);
    }

    /// Produce requests wait in the proxy, unseen by the broker, until `hold` is false again.
    pub fn hold_produce_requests(&self, hold: bool) {
        self.faults.hold_produce.send_replace(hold);
    }

    /// How many Produce requests wait at present.
    #[must_use]
    pub fn held_requests(&self) -> u64 {
        self.faults.held.load(Ordering::Relaxed)
    }

    /// How many requests of an API went by.
    #[must_use]
    pub fn requests(&self, api_key: i16) -> u64 {
        let requests = self.faults.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.get(&api_key).copied().unwrap_or(0)
    }

    /// The lies that it tells.
    #[must_use]
    pub fn lies(&self) -> &Lies {
        &self.faults.lies
    }

    /// Closes every connection; new ones are taken.
    pub fn cut(&self) {
        self.faults.cut.send_modify(|count| *count += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: StdListener, broker: String, faults: Arc<Faults>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    while let Ok((client, _)) = listener.accept().await {
        let (broker, faults) = (broker.clone(), Arc::clone(&faults));
        tokio::spawn(async move {
            // A broker that is down: the client sees a closed connection, as from a broker that just died.
            if let Ok(upstream) = TcpStream::connect(&broker).await {
                connection(client, upstream, &faults).await;
            }
        });
    }
}

/// Passes frames both ways until either side, a fault or a cut ends the connection.
async fn connection(client: TcpStream, broker: TcpStream, faults: &Faults) {
    let _ = client.set_nodelay(true);
    let _ = broker.set_nodelay(true);
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    // Kafka answers the requests of one connection in their order: the API keys still to be answered.
    let unanswered = Mutex::new(VecDeque::new());
    let mut cut = faults.cut.subscribe();
    tokio::select! {
        _ = requests(from_client, to_broker, &unanswered, faults) => {}
        _ = answers(from_broker, to_client, &unanswered, faults) => {}
        _ = cut.changed() => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    unanswered: &Mutex<VecDeque<i16>>,
    faults: &Faults,
) -> io::Result<()> {
    loop {
        let length = from.read_u32().await?;
        let api_key = from.read_i16().await?;
        *faults.requests.lock().unwrap_or_else(PoisonError::into_inner).entry(api_key).or_default() += 1;
        pause(faults).await;
        if api_key == PRODUCE && *faults.hold_produce.borrow() {
            faults.held.fetch_add(1, Ordering::Relaxed);
            let mut hold = faults.hold_produce.subscribe();
            let _ = hold.wait_for(|held| !held).await;
            faults.held.fetch_sub(1, Ordering::Relaxed);
        }
        unanswered.lock().unwrap_or_else(PoisonError::into_inner).push_back(api_key);
        let mut head = [0; 6];
        head[..4].copy_from_slice(&length.to_be_bytes());
        head[4..].copy_from_slice(&api_key.to_be_bytes());
        slow_down(faults, length).await;
        to.write_all(&head).await?;
        pass(&mut from, &mut to, u64::from(length).saturating_sub(2)).await?;
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    unanswered: &Mutex<VecDeque<i16>>,
    faults: &Faults,
) -> io::Result<()> {
    loop {
        let length = from.read_u32().await?;
        pause(faults).await;
        let api_key = unanswered.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if api_key == Some(PRODUCE) && swallows(faults) {
            return Ok(());
        }
        if let Some((answer, lie)) = api_key.and_then(|api_key| faults.lies.due(api_key)) {
            let mut frame = Vec::new();
            (&mut from).take(u64::from(length)).read_to_end(&mut frame).await?;
            to.write_all(&faults.lies.tell(answer, lie, &frame)).await?;
            if lie == Lie::Cut {
                to.shutdown().await?;
            }
            // It is the client that has to end the connection.
            return std::future::pending().await;
        }
        to.write_u32(length).await?;
        pass(&mut from, &mut to, u64::from(length)).await?;
    }
}

fn swallows(faults: &Faults) -> bool {
    let number = faults.produce_answers.fetch_add(1, Ordering::Relaxed) + 1;
    let every = faults.drop_every.load(Ordering::Relaxed);
    let swallowed = every > 0 && number.is_multiple_of(every);
    if swallowed {
        faults.dropped.fetch_add(1, Ordering::Relaxed);
    }
    swallowed
}

async fn pause(faults: &Faults) {
    let ms = faults.delay_ms.load(Ordering::Relaxed);
    if ms > 0 {
        sleep(Duration::from_millis(ms)).await;
    }
}

/// Waits for as long as the request takes on a link of that speed, which connections share by turns of some packets: what fits
/// into one packet does not wait for the large ones of others.
async fn slow_down(faults: &Faults, bytes: u32) {
    let mut left = u64::from(bytes);
    while left > 0 {
        let rate = faults.bytes_per_second.load(Ordering::Relaxed);
        if rate == 0 {
            return;
        }
        let turn = left.min(TURN_BYTES);
        left -= turn;
        let begin = {
            let mut free_at = faults.free_at.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = free_at.unwrap_or_else(Instant::now).max(Instant::now());
            *free_at = Some(begin + Duration::from_micros(turn * 1_000_000 / rate));
            begin
        };
        if u64::from(bytes) > PACKET_BYTES {
            sleep_until(begin).await;
        }
    }
}

async fn pass(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, bytes: u64) -> io::Result<()> {
    let passed = io::copy(&mut from.take(bytes), to).await?;
    if passed < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
        thread,
    };

    use super::*;
    use crate::real::ports::Port;

    const METADATA: u8 = 3;

    /// A broker that answers each frame with its own bytes, and the proxy before it.
    fn echo() -> (Proxy, String) {
        let broker = StdListener::bind("127.0.0.1:0").unwrap();
        let address = broker.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for mut stream in broker.incoming().flatten() {
                thread::spawn(move || {
                    while let Some(frame) = frame(&mut stream) {
                        stream.write_all(&frame).unwrap();
                    }
                });
            }
        });
        let listen = Port::reserve().unwrap().address();
        let proxy = Proxy::start(vec![Route { listen: listen.clone(), broker: address }]).unwrap();
        (proxy, listen)
    }

    /// A frame with its length; none when the connection has ended.
    fn frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
        let mut frame = vec![0; 4];
        stream.read_exact(&mut frame).ok()?;
        let length = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]);
        frame.resize(4 + length as usize, 0);
        stream.read_exact(&mut frame[4..]).ok()?;
        Some(frame)
    }

    fn ask(stream: &mut TcpStream, api_key: u8, payload: &[u8]) -> Option<Vec<u8>> {
        let mut request = u32::try_from(2 + payload.len()).unwrap().to_be_bytes().to_vec();
        request.extend([0, api_key]);
        request.extend(payload);
        stream.write_all(&request).ok()?;
        let answer = frame(stream);
        assert!(answer.as_ref().is_none_or(|answer| *answer == request), "the proxy changed bytes");
        answer
    }

    #[test]
    fn passes_frames_unchanged_and_loses_only_every_nth_produce_answer() {
        let (proxy, listen) = echo();
        proxy.drop_every_nth_produce_answer(3);
        let mut client = TcpStream::connect(&listen).unwrap();
        let payload = vec![7; 300_000];
        for answered in [true, true, false] {
            assert!(ask(&mut client, METADATA, b"metadata").is_some());
            assert_eq!(ask(&mut client, 0, &payload).is_some(), answered);
        }
        assert_eq!((proxy.requests(0), proxy.requests(3), proxy.requests(1)), (3, 3, 0));
        assert_eq!(proxy.dropped_answers(), 1);
        assert!(ask(&mut client, METADATA, b"closed").is_none(), "the connection went with the answer");
        let mut client = TcpStream::connect(&listen).unwrap();
        assert!(ask(&mut client, 0, b"the fourth").is_some());
    }

    #[test]
    fn holds_produce_requests_and_lets_them_go() {
        let (proxy, listen) = echo();
        proxy.hold_produce_requests(true);
        let mut client = TcpStream::connect(&listen).unwrap();
        assert!(ask(&mut client, METADATA, b"not held").is_some());
        let held = thread::spawn(move || ask(&mut client, 0, b"late"));
        while proxy.held_requests() == 0 {
            thread::yield_now();
        }
        assert!(!held.is_finished());
        proxy.hold_produce_requests(false);
        assert!(held.join().unwrap().is_some());
        assert_eq!(proxy.held_requests(), 0);
    }

    #[test]
    fn a_cut_closes_what_is_open_and_takes_new_connections() {
        let (proxy, listen) = echo();
        let mut client = TcpStream::connect(&listen).unwrap();
        assert!(ask(&mut client, METADATA, b"before").is_some());
        proxy.cut();
        assert!(frame(&mut client).is_none());
        assert!(ask(&mut TcpStream::connect(&listen).unwrap(), METADATA, b"after").is_some());
    }
}
