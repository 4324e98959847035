//! Committed records only: what aborted transactions leave, and what an open one stops.

use twinlog_protocol::batch::ProducerStamp;
use twinlog_protocol::fetch::AbortedTransaction;

use super::*;

const PRODUCER_ID: i64 = 4711;

fn of_transaction(base_offset: i64, count: i64) -> Vec<u8> {
    let stamp = ProducerStamp { producer_id: PRODUCER_ID, producer_epoch: 0, base_sequence: 0 };
    let mut batch = BatchBuilder::new().base_offset(base_offset).producer(stamp).transactional();
    (0..count).for_each(|_| batch.push(0, None, None, Vec::new()).unwrap());
    batch.build().unwrap().bytes().to_vec()
}

/// An answer under read_committed, with the first offsets of transactions that were aborted.
fn answer(records: Vec<u8>, last_stable_offset: i64, aborted: &[i64]) -> FetchedRecords {
    let aborted = aborted
        .iter()
        .map(|&first_offset| AbortedTransaction { producer_id: PRODUCER_ID, first_offset })
        .collect();
    FetchedRecords {
        records: records.into(),
        high_watermark: 1000,
        last_stable_offset: Some(last_stable_offset),
        aborted,
        log_start: 0,
        diverging: None,
    }
}

#[test]
fn an_aborted_transaction_is_a_hole_between_those_around_it() {
    let mut bench = Bench::copying();
    let log = [batch(100, 2), of_transaction(102, 3), batch(105, 1), of_transaction(106, 2)].concat();
    bench.fetch_answer(answer(log, 1000, &[102]));
    bench.answer();
    let ticket = bench.next_produce();
    assert_eq!(bench.store(), runs(&[(2, 105, 22)]));
    bench.acknowledge(ticket, 2);
    bench.next_produce();
    assert!(bench.left.is_empty(), "{:?}", bench.left);
    // No marker of its producer came in between: the last batch is of the same transaction.
    assert_eq!((bench.machine.read_next(), bench.machine.backlog_bytes()), (108, 0));
}

#[test]
fn a_stop_leaves_the_copy_behind_what_holds_no_record() {
    let mut bench = Bench::copying();
    bench.fetch_answer(answer([batch(100, 2), of_transaction(102, 3)].concat(), 105, &[102]));
    bench.answer();
    let ticket = bench.next_produce();
    bench.acknowledge(ticket, 2);
    assert_eq!(bench.machine.position(), Some(105));
    bench.machine.handle_stop(bench.now);
    bench.answer();
    assert_eq!((bench.machine.is_stopped(), bench.machine.position()), (true, Some(105)));
}

#[test]
fn a_transaction_that_stays_open_is_looked_at_and_told_until_it_ends() {
    let mut bench = Bench::copying();
    bench.fetch_answer(answer(Vec::new(), 100, &[]));
    assert_eq!((bench.machine.readable_end(), bench.machine.waits()), (Some(100), None));
    bench.wake();
    assert!(matches!(bench.left[..], [Command::AskOpenTransaction { offset: 100 }]), "{:?}", bench.left);
    let age = Some(Duration::from_secs(35));
    let found = OpenTransaction { producer_id: PRODUCER_ID, producer_epoch: 2, age };
    bench.machine.handle_open_transaction(100, &Ok(found));
    let told = bench.events();
    let [Event::Waits { why }] = &told[..] else { panic!("{told:?}") };
    assert!(why.contains("producer id 4711 (epoch 2) is open at upstream offset 100"), "{why}");
    assert_eq!(bench.machine.waits(), Some(why.as_str()));

    bench.fetch_answer(answer(of_transaction(100, 2), 1000, &[]));
    let told = bench.events();
    assert!(told.contains(&Event::GoesOn) && bench.machine.waits().is_none(), "{told:?}");
}
