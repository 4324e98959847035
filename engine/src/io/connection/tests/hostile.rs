//! Brokers that lie, cut, close, or speak something else.

use std::{io, sync::Mutex};

use tracing_subscriber::fmt::MakeWriter;

use super::*;

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
    // With a single subscriber alive, a thread that has none may switch a log line off for all.
    let _second = tracing::Dispatch::new(tracing_subscriber::fmt().with_writer(io::sink).finish());
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
