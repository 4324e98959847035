//! The client against small brokers on TCP, in real time with short pauses.

use std::sync::Mutex;

use tokio::time::{sleep, timeout};
use twinlog_protocol::{message::types::InitProducerIdRequest, versions::Api};

use super::*;
use crate::io::{
    error::Fault,
    tests::{
        closed_port::ClosedPort,
        fake_broker::{FakeBroker, Story},
    },
};

/// Some connection.
const LANE: Lane = Lane::admin(0);

type SharedStory = Arc<Mutex<Story>>;

fn story() -> SharedStory {
    let story = Story { cluster_id: "one", controller: 1, topics: vec![("t", 1, 0)], ..Story::default() };
    Arc::new(Mutex::new(story))
}

fn config(bootstrap: &[&HostPort]) -> ClusterConfig {
    ClusterConfig {
        connect_timeout: Duration::from_secs(5),
        request_timeout: Duration::from_secs(5),
        reconnect_backoff: (Duration::from_millis(5), Duration::from_millis(50)),
        metadata_backoff: (Duration::from_millis(5), Duration::from_millis(50)),
        ..ClusterConfig::new("west", bootstrap.iter().map(|&server| server.clone()).collect())
    }
}

async fn connect(bootstrap: &[&HostPort]) -> ClusterClient {
    timeout(Duration::from_secs(10), ClusterClient::connect(config(bootstrap), 1)).await.expect("reached")
}

fn producer_id_request() -> InitProducerIdRequest {
    InitProducerIdRequest::default().with_transactional_id(None)
}

#[tokio::test]
async fn the_brokers_are_found_from_any_bootstrap_server_that_answers() {
    let story = story();
    let first = FakeBroker::join(1, &story).await;
    let _second = FakeBroker::join(2, &story).await;
    let dead = ClosedPort::reserve();
    let client = connect(&[&dead.server, &first.server, &dead.server]).await;
    let metadata = client.metadata();
    assert_eq!(metadata.cluster_id.as_deref(), Some("one"));
    assert_eq!(metadata.brokers.len(), 2);
    assert!(client.last_error().is_none());
    for node in [1, 2] {
        let answer = client.call(Target::Node { node, lane: LANE }, &producer_id_request()).await.unwrap();
        assert_eq!(answer.producer_id.0, i64::from(node));
    }
    let controller = client.call(Target::Controller, &producer_id_request()).await.unwrap();
    assert_eq!(controller.producer_id.0, 1);
    let unknown = client.connection(3, LANE).await.err().unwrap();
    assert!(matches!(unknown, CallError::UnknownNode { node: 3, .. }) && unknown.has_no_side_effects());
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_tried_on_and_the_reason_kept() {
    let story = story();
    let dead = ClosedPort::reserve();
    let client = ClusterClient::new(config(&[&dead.server]), 1);
    assert!(timeout(Duration::from_millis(200), client.bootstrapped()).await.is_err());
    let error = client.last_error().expect("a reason");
    let CallError::Connection(connection) = &error else { panic!("{error}") };
    assert!(matches!(connection.fault(), Fault::Dial(_)));
    assert!(error.to_string().contains("cluster west, bootstrap server 127.0.0.1:"), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(error.is_retriable() && error.has_no_side_effects());
    // Nobody listens at the one bootstrap server, so a broker that appears elsewhere changes nothing.
    let _elsewhere = FakeBroker::join(1, &story).await;
    assert!(client.refresh_metadata().await.is_err());
}

#[tokio::test]
async fn an_answer_without_brokers_is_no_metadata() {
    let story = story();
    let broker = FakeBroker::start(1, &story).await;
    let client = ClusterClient::new(config(&[&broker.server]), 1);
    let error = client.refresh_metadata().await.unwrap_err();
    assert!(matches!(error, CallError::Metadata { code: 0, .. }), "{error}");
    assert!(client.metadata().brokers.is_empty());
    story.lock().unwrap().brokers.push((1, broker.server.clone()));
    let metadata = timeout(Duration::from_secs(5), client.bootstrapped()).await.unwrap();
    assert_eq!(metadata.brokers.len(), 1);
    assert!(client.last_error().is_none());
}

#[tokio::test]
async fn many_callers_share_one_refresh_and_all_watchers_see_it() {
    let story = story();
    let broker = FakeBroker::join(1, &story).await;
    let client = connect(&[&broker.server]).await;
    let mut watcher = client.watch_metadata();
    watcher.borrow_and_update();
    let before = story.lock().unwrap().count(Api::Metadata);
    story.lock().unwrap().topics.push(("u", 1, 0));
    let all = futures_util::future::join_all((0..50).map(|_| client.refresh_metadata())).await;
    assert!(all.iter().all(|metadata| metadata.as_ref().unwrap().topics.contains_key("u")));
    let asked = story.lock().unwrap().count(Api::Metadata) - before;
    assert!(asked <= 2, "{asked} requests for 50 callers");
    assert!(watcher.has_changed().unwrap());
    assert!(watcher.borrow_and_update().topics.contains_key("u"));
}

#[tokio::test]
async fn refreshes_keep_their_distance() {
    let story = story();
    let broker = FakeBroker::join(1, &story).await;
    let pause = Duration::from_millis(100);
    let client = ClusterClient::new(
        ClusterConfig { metadata_backoff: (pause, pause * 10), ..config(&[&broker.server]) },
        1,
    );
    let started = Instant::now();
    for _ in 0..4 {
        client.refresh_metadata().await.unwrap();
    }
    assert!(started.elapsed() >= pause * 3, "{:?}", started.elapsed());
}

#[tokio::test]
async fn each_lane_is_a_connection_and_is_opened_once() {
    let story = story();
    let broker = FakeBroker::join(1, &story).await;
    let client = connect(&[&broker.server]).await;
    let before = story.lock().unwrap().accepted;
    let opened =
        futures_util::future::join_all((0..30).map(|i| client.connection(1, Lane::admin(i % 3)))).await;
    assert!(opened.into_iter().all(|connection| connection.unwrap().is_open()));
    assert_eq!(story.lock().unwrap().accepted - before, 3);
}

#[tokio::test]
async fn each_role_has_its_client_id_and_connections_of_its_own() {
    let story = story();
    let broker = FakeBroker::join(1, &story).await;
    let client_ids = ClientIds { consumer: "reader".into(), ..ClientIds::all("others") };
    let config = ClusterConfig { client_ids, ..config(&[&broker.server]) };
    let client = timeout(Duration::from_secs(10), ClusterClient::connect(config, 1)).await.unwrap();
    let before = story.lock().unwrap().accepted;
    for (lane, client_id) in
        [(Lane::consumer(7), "reader"), (Lane::admin(7), "others"), (Lane::producer(7), "others")]
    {
        assert_eq!(client.connection(1, lane).await.unwrap().client_id(), client_id);
    }
    assert_eq!(client.any().await.unwrap().client_id(), "others");
    assert!(story.lock().unwrap().accepted - before >= 3);
}

#[tokio::test]
async fn a_broken_connection_is_replaced() {
    let story = story();
    let broker = FakeBroker::join(1, &story).await;
    let client = connect(&[&broker.server]).await;
    let connection = client.connection(1, LANE).await.unwrap();
    connection.end(Fault::Closed);
    let next = client.connection(1, LANE).await.unwrap();
    assert!(!connection.is_open() && next.is_open());
}

#[tokio::test]
async fn a_broker_that_moves_is_found_and_its_old_connection_given_up() {
    let story = story();
    let stays = FakeBroker::join(1, &story).await;
    let old_place = FakeBroker::join(2, &story).await;
    let client = connect(&[&stays.server]).await;
    let old = client.connection(2, LANE).await.unwrap();
    let kept = client.connection(1, LANE).await.unwrap();
    let new_place = FakeBroker::join(2, &story).await;
    client.refresh_metadata().await.unwrap();
    assert!(!old.is_open(), "no new request goes to the old place");
    assert!(kept.is_open());
    let new = client.connection(2, LANE).await.unwrap();
    assert_eq!(new.peer().server, new_place.server);
    assert_ne!(new.peer().server, old_place.server);
    let answer = client.call(Target::Node { node: 2, lane: LANE }, &producer_id_request()).await.unwrap();
    assert_eq!(answer.producer_id.0, 2);
}

#[tokio::test]
async fn all_known_brokers_gone_means_back_to_the_bootstrap_servers() {
    let story = story();
    let entrance = FakeBroker::start(9, &story).await;
    let first = FakeBroker::join(1, &story).await;
    let client = connect(&[&entrance.server]).await;
    let connection = client.connection(1, LANE).await.unwrap();
    drop(first);
    let _moved = FakeBroker::join(1, &story).await;
    let error = loop {
        match connection.call(&producer_id_request(), Duration::from_secs(5)).await {
            Ok(_) => sleep(Duration::from_millis(1)).await,
            Err(error) => break error,
        }
    };
    assert!(error.is_retriable());
    let mut attempts = 0;
    while client.call(Target::Node { node: 1, lane: LANE }, &producer_id_request()).await.is_err() {
        let _ = client.refresh_metadata().await;
        attempts += 1;
        assert!(attempts < 20, "not found: {:?}", client.last_error());
    }
}

#[tokio::test]
async fn a_dead_broker_is_dialed_with_pauses_that_grow() {
    let story = story();
    let alive = FakeBroker::join(1, &story).await;
    let dead = ClosedPort::reserve();
    story.lock().unwrap().brokers.push((2, dead.server.clone()));
    let client = connect(&[&alive.server]).await;
    let started = Instant::now();
    for _ in 0..5 {
        let error = client.connection(2, LANE).await.err().expect("nobody listens");
        assert!(error.to_string().contains("node 2 at 127.0.0.1:"), "{error}");
    }
    // 5 + 10 + 20 + 40 ms less a fifth.
    assert!(started.elapsed() >= Duration::from_millis(60), "{:?}", started.elapsed());
    assert!(client.any().await.is_ok(), "another broker answers at once");
}

#[tokio::test]
async fn the_last_handle_closes_all_connections() {
    let story = story();
    let broker = FakeBroker::join(1, &story).await;
    let client = connect(&[&broker.server]).await;
    let clone = client.clone();
    let connection = clone.connection(1, LANE).await.unwrap();
    drop((client, clone));
    assert!(connection.is_open(), "a connection in use stays");
    connection.call(&producer_id_request(), Duration::from_secs(5)).await.unwrap();
    assert!(story.lock().unwrap().open > 0);
    drop(connection);
    let all_closed = async {
        while story.lock().unwrap().open > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(5), all_closed).await.expect("all connections close");
}
