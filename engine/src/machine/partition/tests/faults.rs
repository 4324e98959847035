//! What a copying partition makes of errors, damaged batches, logs that moved, and other instances.

use super::*;
use crate::machine::resume::TailBatch;

#[test]
fn a_position_out_of_range_holds_only_what_nobody_had_copied_by_then() {
    let mut bench = Bench::copying();
    let span_from = |log_start| SourceSpan { log_start, high_watermark: 500 };
    // Another instance has copied on while the source's log start moved, twice.
    for (last_sequence, log_start) in [(9, 107), (14, 115)] {
        bench.log_end = 21 + i64::from(last_sequence);
        bench.last_batch = Some(LastBatch { producer_epoch: EPOCH, last_sequence });
        bench.finds_source_span(span_from(log_start));
        assert_eq!(bench.machine.held(), None);
        bench.wake();
        let position = 101 + i64::from(last_sequence);
        assert_eq!(bench.machine.fetch_wanted(bench.now), Some(position));
    }
    bench.finds_source_span(span_from(117));
    let reason = HoldReason::OutOfRange { position: 115, log_start: 117, log_end: 500 };
    assert_eq!(bench.machine.held(), Some(&reason));
}

#[test]
fn a_source_that_ends_before_the_position_holds_the_partition() {
    let mut bench = Bench::copying();
    bench.finds_source_span(SourceSpan { log_start: 0, high_watermark: 99 });
    let reason = HoldReason::OutOfRange { position: 100, log_start: 0, log_end: 99 };
    assert_eq!(bench.machine.held(), Some(&reason));
}

#[test]
fn what_another_instance_stores_may_release_a_held_partition() {
    let mut bench = Bench::opened();
    bench.log_end = 28;
    bench.start();
    let Some(Command::ReadTail { attempt, .. }) = bench.left.pop() else { panic!("{:?}", bench.left) };
    let trimmed = Tail { from: 25, last: None, records: 0 };
    bench.machine.handle_tail(bench.now, attempt, trimmed);
    assert!(matches!(bench.machine.held(), Some(HoldReason::Ambiguous { .. })));
    assert_eq!(bench.machine.next_timeout(), None);
    let (producer_id, producer_epoch) = (7, EPOCH);
    let mark = Run { number: 8, upstream: 108, downstream: 28 };
    bench.machine.handle_state(&PartitionEntry::Progress { producer_id, producer_epoch, mark, epoch: None });
    bench.wake();
    let (entry, _) = bench.next_store();
    assert!(matches!(entry, PartitionEntry::Opened(next, None) if next.upstream_start == 108), "{entry:?}");
}

#[test]
fn batches_of_ours_that_slipped_in_before_a_new_epoch_are_counted() {
    let mut bench = Bench::copying();
    bench.fetched(100, 3);
    let ticket = bench.next_produce();
    bench.machine.handle_produced(bench.now, ticket, acknowledged(22));
    bench.answer();
    let read = bench.left.iter().find_map(|command| match command {
        Command::ReadTail { attempt, from: 20, to: 22, .. } => Some(*attempt),
        _ => None,
    });
    let attempt = read.unwrap_or_else(|| panic!("{:?}", bench.left));
    let batch = LastBatch { producer_epoch: EPOCH - 1, last_sequence: 8 };
    let last = Some(TailBatch { batch, next_offset: 22 });
    bench.machine.handle_tail(bench.now, attempt, Tail { from: 20, last, records: 2 });
    let told = bench.machine.poll_command();
    let expected = Event::Repeated { records: 2, from: 20, to: 22 };
    assert!(matches!(&told, Some(Command::Emit(event)) if *event == expected), "{told:?}");
    assert_eq!(bench.machine.fetch_wanted(bench.now), Some(103), "copying goes on");
}

#[test]
fn a_record_that_the_target_refuses_is_told_with_its_size_and_tried_again() {
    let mut bench = Bench::copying();
    bench.fetched(100, 1);
    let ticket = bench.next_produce();
    let code = ErrorCode::MessageTooLarge;
    let answer = ProduceAnswer::Failed { code, detail: "at most 70".to_owned(), named: 0 };
    bench.machine.handle_produced(bench.now, ticket, answer);
    bench.answer();
    let told = bench.machine.held().expect("the partition is held").to_string();
    for part in
        ["bytes at upstream offset 100", "MESSAGE_TOO_LARGE (10)", "max.message.bytes", ": at most 70"]
    {
        assert!(told.contains(part), "{part:?} is missing: {told}");
    }
    bench.wake();
    bench.fetched(100, 1);
    let ticket = bench.next_produce();
    bench.acknowledge(ticket, 1);
    assert_eq!(bench.machine.position(), Some(101));
}

#[test]
fn a_broker_that_sets_the_time_itself_is_told_once() {
    let mut bench = Bench::copying();
    let mut told = Vec::new();
    // The first batch was there already: the answer has the time of its records. Those that follow have the broker's.
    for (first, log_append_time_ms) in [(100, 0), (103, 1_000), (106, 2_000)] {
        bench.fetched(first, 3);
        let ticket = bench.next_produce();
        let base_offset = bench.log_end;
        bench.log_end += 3;
        let answer = ProduceAnswer::Acknowledged { base_offset, log_append_time_ms };
        bench.machine.handle_produced(bench.now, ticket, answer);
        if bench.events().contains(&Event::BrokerTime) {
            told.push(log_append_time_ms);
        }
    }
    assert_eq!(told, [1_000]);
}

#[test]
fn a_partition_that_stops_copying_lets_go_of_what_it_fetched() {
    let mut bench = Bench::copying();
    bench.fetched(100, 3);
    bench.next_produce();
    bench.fetched(103, 3); // waits behind the first batch of the epoch
    assert!(bench.machine.backlog_bytes() > 0);
    let code = ErrorCode::NotEnoughReplicas;
    let answer = ProduceAnswer::Failed { code, detail: String::new(), named: 0 };
    bench.machine.handle_produced(bench.now, 0, answer);
    assert_eq!(bench.machine.backlog_bytes(), 0);
}

#[test]
fn a_generation_that_another_instance_opens_wakes_a_partition_with_nothing_under_way() {
    let mut bench = Bench::copying();
    bench.log_end = 26;
    bench.machine.handle_state(&PartitionEntry::Opened(generation(EPOCH + 1), None));
    assert!(bench.machine.next_timeout().is_some_and(|at| at <= bench.now), "nobody else wakes it");
}

#[test]
fn failures_that_last_are_told_once_and_so_is_their_end() {
    let mut bench = Bench::copying();
    let mut told = Vec::new();
    let mut tell = |bench: &mut Bench| told.extend(bench.events());
    while bench.now < NOW + Duration::from_secs(15) {
        let offset = bench.machine.fetch_wanted(bench.now).unwrap();
        bench.machine.handle_fetch_sent(offset);
        let result = Err(RequestFailure::Unanswered("no route".to_owned()));
        bench.machine.handle_fetched(bench.now, Fetched { offset, result });
        bench.now = bench.machine.next_timeout().unwrap();
        bench.machine.handle_timeout(bench.now);
        tell(&mut bench);
    }
    let why = "Fetch on the source: no route";
    assert_eq!(bench.machine.waits(), Some(why));
    bench.fetched(100, 1);
    let ticket = bench.next_produce();
    bench.machine.handle_produced(bench.now, ticket, acknowledged(20));
    tell(&mut bench);
    assert_eq!(bench.machine.waits(), None);
    told.retain(|event| !matches!(event, Event::Copied { .. }));
    assert_eq!(told, [Event::Waits { why: why.to_owned() }, Event::GoesOn]);
}

#[test]
fn a_batch_that_is_damaged_at_the_source_holds_the_partition() {
    let mut bench = Bench::copying();
    let mut damaged = true;
    let mut fetch = |bench: &mut Bench| {
        let offset = bench.machine.fetch_wanted(bench.now).expect("a partition that wants records");
        bench.machine.handle_fetch_sent(offset);
        let mut batch = BatchBuilder::new().base_offset(100);
        batch.push(0, None, None, vec![]).unwrap();
        let mut bytes = batch.build().unwrap().bytes().to_vec();
        if damaged {
            *bytes.last_mut().unwrap() ^= 1;
        }
        damaged = !damaged;
        let records = FetchedRecords {
            records: bytes.into(),
            high_watermark: 101,
            last_stable_offset: None,
            aborted: Vec::new(),
            log_start: 0,
            diverging: None,
        };
        bench.machine.handle_fetched(bench.now, Fetched { offset, result: Ok(records) });
        bench.answer();
    };
    let refuse = |bench: &mut Bench| {
        let ticket = bench.next_produce();
        let code = ErrorCode::CorruptMessage;
        let answer = ProduceAnswer::Failed { code, detail: String::new(), named: 0 };
        bench.machine.handle_produced(bench.now, ticket, answer);
        bench.wake();
    };
    // Damaged on the way to us: it is read again, and goes.
    fetch(&mut bench);
    refuse(&mut bench);
    fetch(&mut bench);
    // The target says so again, and now it is the source.
    refuse(&mut bench);
    fetch(&mut bench);
    assert!(matches!(bench.machine.held(), Some(HoldReason::DamagedSource { offset: 100, .. })));
    assert!(!bench.left.iter().any(|command| matches!(command, Command::Produce { .. })));
}
