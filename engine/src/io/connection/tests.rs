//! A connection against a scripted broker, under paused time.

use std::{convert::Infallible, io, sync::Mutex};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
    time::{sleep, timeout},
};
use tracing_subscriber::fmt::MakeWriter;
use twinlog_protocol::message::types::InitProducerIdRequest;

use super::*;
use crate::{
    io::fake_broker::{answer, producer_id_body, read_request, shake_hands},
    machine::metadata::HostPort,
};

const LIMIT: Duration = Duration::from_secs(30);
const EXPECTS: Expects = Expects { api: Api::InitProducerId, timeout: LIMIT };

fn peer() -> Arc<Peer> {
    Arc::new(Peer {
        cluster: Arc::from("west"),
        node: Some(7),
        server: HostPort::new("broker-7", 9092),
        address: Some("10.0.0.7:9092".parse().unwrap()),
    })
}

/// A connection before its handshake, and the broker's end of it.
fn connected_with(options: ConnectionOptions) -> (Connection, DuplexStream) {
    let (ours, theirs) = duplex(1024);
    let (reading, writing) = split(ours);
    (Connection::start(reading, writing, peer(), options), theirs)
}

fn connected() -> (Connection, DuplexStream) {
    connected_with(ConnectionOptions::default())
}

/// A connection after its handshake.
async fn introduced() -> (Connection, DuplexStream) {
    let (ours, mut theirs) = duplex(1024);
    let (reading, writing) = split(ours);
    let open = Connection::open(reading, writing, peer(), ConnectionOptions::default());
    let (connection, ()) = tokio::join!(open, shake_hands(&mut theirs));
    (connection.expect("a clean handshake"), theirs)
}

/// A request without a body.
fn frame(correlation_id: i32) -> Result<Frame, Infallible> {
    frame_with(correlation_id, Bytes::new())
}

fn frame_with(correlation_id: i32, body: impl Buf + Send + 'static) -> Result<Frame, Infallible> {
    let length = i32::try_from(8 + body.remaining()).unwrap();
    let mut head = length.to_be_bytes().to_vec();
    head.extend([0, 22, 0, 1]);
    head.extend(correlation_id.to_be_bytes());
    Ok(Box::new(Bytes::from(head).chain(body)))
}

async fn fault_of(pending: Pending) -> ConnectionError {
    pending.await.expect_err("the connection has ended")
}

/// The fault that these bytes from the broker lead to, while one request waits; then the broker closes.
async fn fault_after(bytes: &[u8]) -> ConnectionError {
    let (connection, mut broker) = connected();
    let pending = connection.submit(EXPECTS, frame).unwrap();
    read_request(&mut broker).await.unwrap();
    broker.write_all(bytes).await.unwrap();
    drop(broker);
    fault_of(pending).await
}

#[tokio::test(start_paused = true)]
async fn requests_go_out_in_call_order_and_answers_reach_their_waiters() {
    let (connection, mut broker) = connected();
    let waiters: Vec<_> = (0..100).map(|_| connection.submit(EXPECTS, frame).unwrap()).collect();
    tokio::spawn(async move {
        for expected in 0..100 {
            let request = read_request(&mut broker).await.unwrap();
            assert_eq!(request.correlation_id, expected);
            broker.write_all(&answer(expected, &[u8::try_from(expected).unwrap()])).await.unwrap();
        }
        broker
    });
    for (index, waiter) in waiters.into_iter().enumerate() {
        let id = waiter.correlation_id();
        assert_eq!(waiter.await.unwrap()[..], answer(id, &[u8::try_from(index).unwrap()])[4..]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_halves() {
    let (connection, mut broker) = connected();
    let waiters = [(); 2].map(|()| connection.submit(EXPECTS, frame).unwrap());
    let bytes = [answer(0, b"first"), answer(1, b"second")].concat();
    for byte in bytes {
        broker.write_all(&[byte]).await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    let [first, second] = waiters;
    assert_eq!(first.await.unwrap()[4..], *b"first");
    assert_eq!(second.await.unwrap()[4..], *b"second");
}

#[tokio::test(start_paused = true)]
async fn all_waiters_get_the_first_fault() {
    let (connection, mut broker) = connected();
    let waiters: Vec<_> = (0..5).map(|_| connection.submit(EXPECTS, frame).unwrap()).collect();
    for _ in 0..5 {
        read_request(&mut broker).await.unwrap();
    }
    broker.write_all(&answer(3, b"not yours")).await.unwrap();
    let mut faults = Vec::new();
    for waiter in waiters {
        let error = fault_of(waiter).await;
        assert!(!error.has_no_side_effects());
        faults.push(error);
    }
    assert!(matches!(faults[0].fault(), Fault::Frame(DecodeError::Correlation { expected: 0, found: 3 })));
    assert!(faults.iter().all(|error| std::ptr::eq(error.fault(), faults[0].fault())));
    assert!(!connection.is_open());
    let CallError::Connection(late) = connection.submit(EXPECTS, frame).unwrap_err() else { panic!() };
    assert!(std::ptr::eq(late.fault(), faults[0].fault()));
    assert!(late.has_no_side_effects());
    assert_eq!(broker.read(&mut [0]).await.unwrap(), 0, "our end is closed");
}

#[tokio::test(start_paused = true)]
async fn lengths_that_cannot_be_true() {
    for length in [-1, i32::MIN, i32::MAX, 100 * 1024 * 1024 + 1] {
        let error = fault_after(&length.to_be_bytes()).await;
        let Fault::Frame(DecodeError::FrameLength { length: found, .. }) = error.fault() else {
            panic!("{error}")
        };
        assert_eq!(*found, i64::from(length));
    }
    for length in 0..4 {
        let error = fault_after(&answer(0, &[])[..4 + length]).await;
        assert!(matches!(error.fault(), Fault::ClosedMidFrame { wanted: 4, .. }), "{error}");
        let mut short = i32::try_from(length).unwrap().to_be_bytes().to_vec();
        short.extend(&[0; 4][..length]);
        let error = fault_after(&short).await;
        assert!(matches!(error.fault(), Fault::Frame(DecodeError::Truncated { wanted: 4, .. })), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_cut() {
    let whole = answer(0, b"some bytes");
    for end in 1..whole.len() {
        let error = fault_after(&whole[..end]).await;
        assert!(matches!(error.fault(), Fault::ClosedMidFrame { .. }), "{end}: {error}");
        assert!(!error.has_no_side_effects());
    }
    let lying = fault_after(&[&100_000_000i32.to_be_bytes()[..], &[0; 10]].concat()).await;
    assert!(matches!(lying.fault(), Fault::ClosedMidFrame { arrived: 10, wanted: 100_000_000 }), "{lying}");
    assert_eq!(
        lying.to_string(),
        "cluster west, node 7 at broker-7:9092 (10.0.0.7:9092): the broker closed the connection after 10 of \
         100000000 bytes of an answer"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nothing_asked_for() {
    let (connection, mut broker) = connected();
    broker.write_all(&answer(0, b"")).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    let CallError::Connection(error) = connection.submit(EXPECTS, frame).unwrap_err() else { panic!() };
    assert!(matches!(error.fault(), Fault::Unrequested { bytes: 4 }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_closes_on_the_first_request_hints_at_tls() {
    let error = fault_after(&[]).await;
    assert!(
        error.to_string().contains("before it answered the first request: does this listener expect TLS?")
    );
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_closes_after_the_handshake_hints_at_sasl() {
    let (connection, mut broker) = introduced().await;
    let call = connection.submit(EXPECTS, frame).unwrap();
    read_request(&mut broker).await.unwrap();
    drop(broker);
    let error = fault_of(call).await;
    assert!(error.to_string().contains("after ApiVersions: does this listener expect SASL?"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_goes_away_later_is_just_gone() {
    let (connection, mut broker) = introduced().await;
    let call = connection.submit(EXPECTS, frame).unwrap();
    let id = read_request(&mut broker).await.unwrap().correlation_id;
    broker.write_all(&answer(id, b"")).await.unwrap();
    call.await.unwrap();
    let call = connection.submit(EXPECTS, frame).unwrap();
    drop(broker);
    assert!(matches!(fault_of(call).await.fault(), Fault::Closed | Fault::Write(_)));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_ends_the_connection_for_all() {
    let (connection, mut broker) = connected();
    let started = Instant::now();
    let patient = connection.submit(EXPECTS, frame).unwrap();
    let hasty = Expects { timeout: Duration::from_secs(5), ..EXPECTS };
    let hasty = connection.submit(hasty, frame).unwrap();
    let error = fault_of(patient).await;
    assert!(matches!(error.fault(), Fault::Timeout { limit, .. } if limit.as_secs() == 5), "{error}");
    assert_eq!(started.elapsed().as_secs(), 5);
    assert!(std::ptr::eq(fault_of(hasty).await.fault(), error.fault()));
    while read_request(&mut broker).await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn answers_in_time_keep_the_connection_for_ever() {
    let (connection, mut broker) = connected();
    for id in 0..50 {
        let pending = connection.submit(EXPECTS, frame).unwrap();
        read_request(&mut broker).await.unwrap();
        sleep(LIMIT - Duration::from_secs(1)).await;
        broker.write_all(&answer(id, b"")).await.unwrap();
        pending.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_keeps_its_place() {
    let (connection, mut broker) = connected();
    drop(connection.submit(EXPECTS, frame).unwrap());
    let abandoned = connection.submit(EXPECTS, frame).unwrap();
    assert!(timeout(Duration::from_millis(5), abandoned).await.is_err());
    let third = connection.submit(EXPECTS, frame).unwrap();
    for id in 0..3 {
        assert_eq!(read_request(&mut broker).await.unwrap().correlation_id, id);
        broker.write_all(&answer(id, &[b'a' + u8::try_from(id).unwrap()])).await.unwrap();
    }
    assert_eq!(third.await.unwrap()[4..], *b"c");
}

#[tokio::test(start_paused = true)]
async fn only_requests_that_were_not_begun_have_no_side_effects() {
    let (connection, mut broker) = connected();
    // The pipe takes 1024 bytes: the first frame is begun and stuck, the second waits behind it.
    let long = |id| frame_with(id, Bytes::from(vec![0; 2000]));
    let begun = connection.submit(EXPECTS, long).unwrap();
    let waiting = connection.submit(EXPECTS, long).unwrap();
    broker.read_exact(&mut [0; 100]).await.unwrap();
    drop(broker);
    assert!(!fault_of(begun).await.has_no_side_effects());
    assert!(fault_of(waiting).await.has_no_side_effects());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_built_takes_no_place() {
    let (connection, mut broker) = connected();
    let refused = connection.submit(EXPECTS, |_| {
        Err(twinlog_protocol::EncodeError::TooLong { field: "client id", length: 40_000, limit: 32_767 })
    });
    assert!(matches!(refused, Err(CallError::Encode(_))));
    let _pending = connection.submit(EXPECTS, frame).unwrap();
    assert_eq!(read_request(&mut broker).await.unwrap().correlation_id, 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_so_many_are_under_way() {
    let (connection, mut broker) =
        connected_with(ConnectionOptions { requests_max: 2, ..ConnectionOptions::default() });
    let first = connection.submit(EXPECTS, frame).unwrap();
    let _second = connection.submit(EXPECTS, frame).unwrap();
    let CallError::Connection(error) = connection.submit(EXPECTS, frame).unwrap_err() else { panic!() };
    assert!(matches!(error.fault(), Fault::Full { limit: 2 }) && error.has_no_side_effects());
    assert!(connection.is_open());

    let request = InitProducerIdRequest::default().with_transactional_id(None);
    let (third, ()) = tokio::join!(connection.call_in(&request, 1, LIMIT), async {
        read_request(&mut broker).await.unwrap();
        read_request(&mut broker).await.unwrap();
        assert!(timeout(Duration::from_secs(1), broker.read_u8()).await.is_err(), "a third is under way");
        broker.write_all(&answer(0, b"")).await.unwrap();
        read_request(&mut broker).await.unwrap();
        broker.write_all(&answer(1, b"")).await.unwrap();
        broker.write_all(&answer(2, &producer_id_body(0, 5))).await.unwrap();
    });
    first.await.unwrap();
    assert_eq!(third.unwrap().producer_id.0, 5);
}

#[tokio::test(start_paused = true)]
async fn a_throttle_time_delays_the_next_request_and_not_its_limit() {
    let (connection, mut broker) = introduced().await;
    let request = InitProducerIdRequest::default().with_transactional_id(None);
    let (throttled, ()) = tokio::join!(connection.call(&request, LIMIT), async {
        let id = read_request(&mut broker).await.unwrap().correlation_id;
        broker.write_all(&answer(id, &producer_id_body(40_000, 5))).await.unwrap();
    });
    assert_eq!(throttled.unwrap().producer_id.0, 5);

    let started = Instant::now();
    let (next, ()) = tokio::join!(connection.call(&request, LIMIT), async {
        let id = read_request(&mut broker).await.unwrap().correlation_id;
        assert_eq!(started.elapsed().as_secs(), 40);
        sleep(LIMIT / 2).await;
        broker.write_all(&answer(id, &producer_id_body(0, 6))).await.unwrap();
    });
    assert_eq!(next.unwrap().producer_id.0, 6);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_closes_before_the_broker_does_it() {
    let (connection, mut broker) = introduced().await;
    let started = Instant::now();
    assert_eq!(broker.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(started.elapsed().as_secs(), 9 * 60);
    let CallError::Connection(error) = connection.submit(EXPECTS, frame).unwrap_err() else { panic!() };
    assert!(matches!(error.fault(), Fault::Idle) && error.has_no_side_effects());
}

#[tokio::test(start_paused = true)]
async fn a_connection_given_up_answers_what_is_under_way() {
    let (connection, mut broker) = connected();
    let pending = connection.submit(EXPECTS, frame).unwrap();
    connection.give_up();
    assert!(!connection.is_open());
    let CallError::Connection(error) = connection.submit(EXPECTS, frame).unwrap_err() else { panic!() };
    assert!(matches!(error.fault(), Fault::Retired) && error.has_no_side_effects());
    read_request(&mut broker).await.unwrap();
    broker.write_all(&answer(0, b"last")).await.unwrap();
    assert_eq!(pending.await.unwrap()[4..], *b"last");
    assert_eq!(broker.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_closes_and_a_waiter_still_gets_its_answer() {
    let (connection, mut broker) = connected();
    let pending = connection.submit(EXPECTS, frame).unwrap();
    let other = connection.clone();
    drop(connection);
    assert!(other.is_open());
    drop(other);
    read_request(&mut broker).await.unwrap();
    broker.write_all(&answer(0, b"last")).await.unwrap();
    assert_eq!(pending.await.unwrap()[4..], *b"last");
    assert_eq!(broker.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn versions_are_negotiated_from_the_handshake() {
    let (connection, _broker) = introduced().await;
    assert_eq!(connection.version(Api::Metadata), Ok(8));
    assert_eq!(connection.version(Api::InitProducerId), Ok(1));
    assert_eq!(
        connection.version(Api::DescribeProducers),
        Err(Unsupported::unlisted(Api::DescribeProducers))
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_a_silent_and_a_garbled_handshake() {
    for (body, expected) in [
        (&[0, 42, 0, 0, 0, 0][..], "the broker refused ApiVersions with error 42"),
        (&[0, 35, 0x7f, 0xff, 0xff, 0xff], "the answer to ApiVersions cannot be read"),
        (b"", "ApiVersions had no answer within 10s"),
    ] {
        let (ours, mut theirs) = duplex(1024);
        let (reading, writing) = split(ours);
        let open = Connection::open(reading, writing, peer(), ConnectionOptions::default());
        let broker = async {
            while let Some(request) = read_request(&mut theirs).await {
                // Version 0 for all: the newest version is answered with "unsupported" in version 0 too.
                let body = if request.version == 0 || body != [0, 42, 0, 0, 0, 0] {
                    body
                } else {
                    &[0, 35, 0, 0, 0, 0]
                };
                if !body.is_empty() {
                    theirs.write_all(&answer(request.correlation_id, body)).await.unwrap();
                }
            }
        };
        let (opened, ()) = tokio::join!(open, broker);
        let error = opened.err().expect(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_ends_the_connection_for_all() {
    let (connection, mut broker) = introduced().await;
    let request = InitProducerIdRequest::default().with_transactional_id(None);
    let call = connection.call(&request, LIMIT);
    let mut behind = None;
    let (called, ()) = tokio::join!(call, async {
        let id = read_request(&mut broker).await.unwrap().correlation_id;
        behind = Some(connection.submit(EXPECTS, frame).unwrap());
        broker.write_all(&answer(id, &producer_id_body(0, 5)[..9])).await.unwrap();
    });
    let CallError::Connection(error) = called.unwrap_err() else { panic!() };
    assert!(matches!(error.fault(), Fault::Undecodable { api: Api::InitProducerId, .. }), "{error}");
    assert!(!error.has_no_side_effects());
    assert!(std::ptr::eq(fault_of(behind.unwrap()).await.fault(), error.fault()));
}

#[tokio::test(start_paused = true)]
async fn the_chunks_of_a_frame_arrive_as_one_request() {
    let (connection, mut broker) = connected();
    let body = Bytes::from(vec![1; 3000]).chain(Bytes::from_static(b"-")).chain(Bytes::from(vec![2; 3000]));
    let _pending = connection.submit(EXPECTS, |id| frame_with(id, body)).unwrap();
    let request = read_request(&mut broker).await.unwrap();
    assert_eq!(request.rest, [&[1; 3000][..], b"-", &[2; 3000]].concat());
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Captured {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn one_log_line_names_the_connection_that_was_lost() {
    let log = Captured::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    fault_after(&[0xff; 4]).await;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    for part in [
        "WARN",
        "connection lost: ",
        "-1",
        "cluster=west",
        "node=7",
        "broker-7:9092 (10.0.0.7:9092)",
        "waiting=1",
    ] {
        assert!(log.contains(part), "{part} not in {log}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_answer_or_fail_every_waiter(
        bytes in proptest::collection::vec(
            proptest::prop_oneof![proptest::num::u8::ANY, proptest::strategy::Just(0), 0u8..16],
            0..64,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (connection, mut broker) = connected();
            let waiters: Vec<_> = (0..3).map(|_| connection.submit(EXPECTS, frame).unwrap()).collect();
            for _ in 0..3 {
                read_request(&mut broker).await.unwrap();
            }
            broker.write_all(&bytes).await.unwrap();
            for waiter in waiters {
                let _ = timeout(LIMIT * 2, waiter).await.expect("an answer or a fault");
            }
        });
    }
}
