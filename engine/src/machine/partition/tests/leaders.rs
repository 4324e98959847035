//! Leaders that come and go, and topics that are made again, by what metadata says.

use super::*;

#[test]
fn a_source_without_a_leader_is_asked_again_and_again() {
    let mut bench = Bench::copying();
    let leader = |node, topic_id| Some(Leader { node, leader_epoch: 0, topic_id });
    bench.machine.handle_leaders(bench.now, leader(None, 1), leader(Some(1), 2));
    bench.answer();
    for _ in 0..3 {
        assert!(matches!(bench.left.pop(), Some(Command::RefreshMetadata(Side::Source))), "{:?}", bench.left);
        assert_eq!(bench.machine.fetch_wanted(bench.now), None);
        let before = bench.now;
        bench.wake();
        assert!(bench.now > before);
    }
    bench.machine.handle_leaders(bench.now, leader(Some(2), 1), leader(Some(1), 2));
    bench.wake();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
}

#[test]
fn a_fetch_that_was_under_way_when_the_leader_left_is_sent_anew_to_the_next_one() {
    let mut bench = Bench::copying();
    let leader = |node, topic_id| Some(Leader { node, leader_epoch: 0, topic_id });
    for none in [leader(None, 1), None] {
        assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
        bench.machine.handle_fetch_sent(100);
        bench.machine.handle_leaders(bench.now, none, leader(Some(1), 2));
        bench.answer();
        assert_eq!((bench.machine.fetching(), bench.machine.fetch_wanted(bench.now)), (None, None));
        bench.machine.handle_leaders(bench.now, leader(Some(2), 1), leader(Some(1), 2));
        bench.wake();
    }
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
}

#[test]
fn a_source_made_again_holds_the_partition_before_anything_of_it_is_sent() {
    let mut bench = Bench::copying();
    let offset = bench.machine.fetch_wanted(bench.now).unwrap();
    bench.machine.handle_fetch_sent(offset);
    let leader = |topic_id| Some(Leader { node: Some(1), leader_epoch: 0, topic_id });
    // It is away for a while before it is there again.
    bench.machine.handle_leaders(bench.now, None, leader(2));
    bench.machine.handle_leaders(bench.now, leader(9), leader(2));
    bench.answer();
    assert_eq!(bench.machine.held(), Some(&HoldReason::Recreated { side: Side::Source }));
    let sends = |command: &Command| matches!(command, Command::Produce { .. });
    assert!(!bench.left.iter().any(sends), "{:?}", bench.left);
}

#[test]
fn a_source_made_again_while_a_decision_is_taken_is_not_copied() {
    let mut bench = Bench::lining_up();
    let attempt = bench.until_state_is_read();
    let leader = |topic_id| Some(Leader { node: Some(1), leader_epoch: 0, topic_id });
    bench.machine.handle_leaders(bench.now, leader(9), leader(2));
    bench.machine.handle_state_read(bench.now, attempt);
    bench.answer();
    assert_eq!(bench.machine.fetch_wanted(bench.now), None);
    bench.wake();
    assert_eq!(bench.machine.held(), Some(&HoldReason::Recreated { side: Side::Source }));
}

#[test]
fn a_leader_elected_while_a_decision_is_taken_is_asked_before_anything_is_sent() {
    let mut bench = Bench::lining_up();
    let attempt = bench.until_state_is_read();
    let source = Some(Leader { node: Some(1), leader_epoch: 0, topic_id: 1 });
    let elected = Some(Leader { node: Some(2), leader_epoch: 1, topic_id: 2 });
    bench.machine.handle_leaders(bench.now, source, elected);
    // The new leader's log holds a batch that the old one never had: sent, never acknowledged, and forgotten.
    bench.log_end = 21;
    bench.machine.handle_state_read(bench.now, attempt);
    assert_eq!(bench.machine.fetch_wanted(bench.now), None, "what the old leader said is out of date");
    bench.wake();
    assert!(matches!(bench.left[..], [Command::ReadTail { from: 20, to: 21, .. }]), "{:?}", bench.left);
}

#[test]
fn a_topic_that_only_old_metadata_took_for_another_is_copied() {
    let mut bench = Bench::opened();
    let leader = |topic_id| Some(Leader { node: Some(1), leader_epoch: 0, topic_id });
    bench.machine.handle_leaders(bench.now, leader(1), leader(9));
    bench.answer();
    assert_eq!(bench.machine.held(), Some(&HoldReason::Recreated { side: Side::Target }));
    bench.machine.handle_leaders(bench.now, leader(1), leader(2));
    bench.answer();
    bench.wake();
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(100));
}
