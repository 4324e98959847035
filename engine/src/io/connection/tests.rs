//! A connection against a scripted broker, under paused time. What a broker may do wrong is in `hostile`.

mod hostile;

use std::convert::Infallible;

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
    time::{sleep, timeout},
};
use twinlog_protocol::{EncodeError, message::types::InitProducerIdRequest};

use super::*;
use crate::{
    io::tests::fake_broker::{answer, producer_id_body, read_request, shake_hands},
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

fn frame_with(correlation_id: i32, body: impl Into<Frame>) -> Result<Frame, Infallible> {
    let body = body.into();
    let length = i32::try_from(8 + body.remaining()).unwrap();
    let mut head = length.to_be_bytes().to_vec();
    head.extend([0, 22, 0, 1]);
    head.extend(correlation_id.to_be_bytes());
    let mut frame = Frame::from(Bytes::from(head));
    frame.append(body);
    Ok(frame)
}

async fn fault_of(pending: Pending) -> ConnectionError {
    pending.await.expect_err("the connection has ended")
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
async fn a_late_answer_ends_the_connection_for_all() {
    let (connection, mut broker) = connected();
    let started = Instant::now();
    let hasty = Expects { timeout: Duration::from_secs(5), ..EXPECTS };
    let hasty = connection.submit(hasty, frame).unwrap();
    let patient = connection.submit(EXPECTS, frame).unwrap();
    let error = fault_of(patient).await;
    assert!(matches!(error.fault(), Fault::Timeout { limit, .. } if limit.as_secs() == 5), "{error}");
    assert_eq!(started.elapsed().as_secs(), 5);
    assert!(std::ptr::eq(fault_of(hasty).await.fault(), error.fault()));
    while read_request(&mut broker).await.is_some() {}
}

/// A broker answers one request after the other, so that the last of many waits for all.
#[tokio::test(start_paused = true)]
async fn the_time_of_an_answer_runs_from_the_one_before_it() {
    let (connection, mut broker) = connected();
    let waiters: Vec<_> = (0..10).map(|_| connection.submit(EXPECTS, frame).unwrap()).collect();
    tokio::spawn(async move {
        for id in 0..9 {
            read_request(&mut broker).await.unwrap();
            sleep(LIMIT - Duration::from_secs(1)).await;
            broker.write_all(&answer(id, b"")).await.unwrap();
        }
        sleep(LIMIT * 2).await;
    });
    let started = Instant::now();
    for (waiter, id) in waiters.into_iter().zip(0..) {
        assert_eq!(waiter.await.is_ok(), id < 9, "{id}");
    }
    assert_eq!(started.elapsed(), (LIMIT - Duration::from_secs(1)) * 9 + LIMIT);
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
    let refused = connection
        .submit(EXPECTS, |_| Err(EncodeError::TooLong { field: "client id", length: 40_000, limit: 32_767 }));
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
async fn while_the_broker_is_deaf_the_limit_of_what_it_has_not_read_stands_still() {
    let (connection, mut broker) = connected();
    let started = Instant::now();
    let throttled = connection.submit(EXPECTS, frame).unwrap();
    let behind = connection.submit(EXPECTS, frame).unwrap();
    read_request(&mut broker).await.unwrap();
    broker.write_all(&answer(0, b"")).await.unwrap();
    throttled.await.unwrap();
    connection.throttle(20_000);
    let error = fault_of(behind).await;
    assert!(matches!(error.fault(), Fault::Timeout { .. }), "{error}");
    assert_eq!(started.elapsed(), Duration::from_secs(20) + EXPECTS.timeout);
}

#[tokio::test(start_paused = true)]
async fn connections_that_share_a_silence_are_silent_together() {
    let options = ConnectionOptions::default();
    let [first, second] = [(); 2].map(|()| connected_with(options.clone()));
    let started = Instant::now();
    first.0.throttle(3_000);
    let (other, mut broker) = second;
    let pending = other.submit(EXPECTS, frame).unwrap();
    read_request(&mut broker).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(3));
    broker.write_all(&answer(0, b"")).await.unwrap();
    pending.await.unwrap();
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

/// `memory.max` may be used up for longer than an answer may take.
#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_for_room_is_not_late() {
    let memory = MemoryBudget::new(100_000);
    let all = memory.wait(100_000).await;
    let options = ConnectionOptions { memory: Some(memory.clone()), ..ConnectionOptions::default() };
    let (connection, mut broker) = connected_with(options);
    let [large, next] = [(), ()].map(|()| connection.submit(EXPECTS, frame).unwrap());
    tokio::spawn(async move {
        broker.write_all(&answer(0, &[7; 50_000])).await.unwrap();
        sleep(LIMIT / 2).await;
        broker.write_all(&answer(1, b"small")).await.unwrap();
        broker
    });
    sleep(LIMIT * 100).await;
    assert!(connection.is_open());
    drop(all);
    let large = large.await.unwrap();
    assert_eq!((large.len(), memory.used()), (50_004, 50_004));
    assert_eq!(next.await.unwrap()[4..], *b"small");
    drop(large);
    assert_eq!(memory.used(), 0);
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
async fn the_round_trip_is_that_of_the_handshake() {
    let (ours, mut theirs) = duplex(1024);
    let (reading, writing) = split(ours);
    let open = Connection::open(reading, writing, peer(), ConnectionOptions::default());
    let far_away = async {
        sleep(Duration::from_millis(50)).await;
        shake_hands(&mut theirs).await;
    };
    let (connection, ()) = tokio::join!(open, far_away);
    assert_eq!(connection.expect("a clean handshake").round_trip(), Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn the_body_of_an_answer_is_a_slice_of_it() {
    let (connection, mut broker) = connected();
    let flexible = connection.submit(EXPECTS, frame).unwrap();
    let cut = connection.submit(EXPECTS, frame).unwrap();
    read_request(&mut broker).await.unwrap();
    read_request(&mut broker).await.unwrap();
    broker.write_all(&answer(0, &[0, 1, 2])).await.unwrap();
    broker.write_all(&answer(1, &[])).await.unwrap();
    assert_eq!(connection.body(flexible, 2).await.unwrap()[..], [1, 2]);
    let error = connection.body(cut, 2).await.unwrap_err();
    assert!(matches!(error.fault(), Fault::Undecodable { .. }), "{error}");
    assert!(!connection.is_open());
}

#[tokio::test(start_paused = true)]
async fn the_chunks_of_a_frame_arrive_as_one_request() {
    let (connection, mut broker) = connected();
    let body: Frame = [Bytes::from(vec![1; 3000]), Bytes::from_static(b"-"), Bytes::from(vec![2; 3000])]
        .into_iter()
        .collect();
    let _pending = connection.submit(EXPECTS, |id| frame_with(id, body)).unwrap();
    let request = read_request(&mut broker).await.unwrap();
    assert_eq!(request.rest, [&[1; 3000][..], b"-", &[2; 3000]].concat());
}
