use super::*;
use crate::machine::hold::Side;

const START: Now = Duration::from_secs(1000);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn copies(position: i64, end: i64) -> Look<'static> {
    Look { doing: Doing::Copying, blocked: None, position: Some(position), readable_end: Some(end) }
}

fn does<'a>(doing: Doing<'a>, look: &Look<'a>) -> Look<'a> {
    Look { doing, ..*look }
}

fn deleted() -> HoldReason {
    HoldReason::Deleted { side: Side::Source }
}

/// How it fares after this look, and since when.
fn after(course: &mut Course, now: Now, look: &Look<'_>) -> (Fares, Now) {
    course.handle_look(now, look);
    (course.fares(), course.since())
}

#[test]
fn a_new_one_waits_for_its_line_up_then_copies_then_has_caught_up() {
    let mut course = Course::new(START);
    let unknown = Look { doing: Doing::Approaching, blocked: None, position: None, readable_end: None };
    assert_eq!(after(&mut course, START + SECOND, &unknown), (Fares::Waiting, START));
    let begun = START + SECOND * 2;
    let look = Look { position: Some(0), ..does(Doing::Copying, &unknown) };
    assert_eq!(after(&mut course, begun, &look), (Fares::Copying, begun));
    assert_eq!(after(&mut course, begun + MINUTE, &copies(10, 100)), (Fares::Copying, begun));
    let level = begun + MINUTE * 2;
    assert_eq!(after(&mut course, level, &copies(100, 100)), (Fares::CaughtUp, level));
    assert_eq!(after(&mut course, level + MINUTE * 60, &copies(100, 100)), (Fares::CaughtUp, level));
}

#[test]
fn one_that_never_has_all_has_caught_up_while_it_keeps_up() {
    let mut course = Course::new(START);
    let mut now = START;
    for end in 1..600 {
        now += SECOND;
        course.handle_look(now, &copies(end - 1, end));
    }
    assert_eq!((course.fares(), course.since()), (Fares::CaughtUp, START + SECOND * 2));
    // It gets no further, and nobody looks until long after.
    let (last, position) = (now, 599);
    now += MINUTE;
    assert_eq!(after(&mut course, now, &copies(position - 1, 900)), (Fares::Copying, last - SECOND));
}

#[test]
fn a_record_after_a_quiet_hour_is_no_hour_of_lag() {
    let mut course = Course::new(START);
    course.handle_look(START, &copies(5, 5));
    let late = START + MINUTE * 60;
    assert_eq!(after(&mut course, late, &copies(5, 6)), (Fares::CaughtUp, START));
    assert_eq!(after(&mut course, late + LASTS, &copies(5, 7)), (Fares::Copying, late));
}

#[test]
fn who_tries_again_in_vain_was_held_all_the_time() {
    let mut course = Course::new(START);
    let reason = deleted();
    let look = copies(5, 9);
    let held = does(Doing::Held(&reason), &look);
    course.handle_look(START, &look);
    let since = START + SECOND;
    for retry in 0..10 {
        let now = since + MINUTE * retry;
        let (fares, at) = after(&mut course, now, &held);
        assert!(matches!(fares, Fares::Held(_)) && at == since, "{fares:?} since {at:?}");
        for doing in [Doing::Approaching, Doing::Copying] {
            assert_eq!(after(&mut course, now + SECOND, &does(doing, &look)), (fares, since));
        }
        assert_eq!(course.held(), Some(&reason));
    }
    // Another reason of the same kind keeps the time and gives its words; one of another kind begins anew.
    let now = since + MINUTE * 20;
    let other = HoldReason::Deleted { side: Side::Target };
    assert_eq!(after(&mut course, now, &does(Doing::Held(&other), &look)).1, since);
    assert_eq!(course.held(), Some(&other));
    let other = HoldReason::Recreated { side: Side::Target };
    assert_eq!(after(&mut course, now, &does(Doing::Held(&other), &look)).1, now);
}

#[test]
fn who_was_held_is_free_once_it_copies_or_nothing_holds_it_for_a_while() {
    let reason = deleted();
    let look = copies(5, 9);
    for quiet in [false, true] {
        let mut course = Course::new(START);
        course.handle_look(START, &does(Doing::Held(&reason), &look));
        let freed = START + MINUTE;
        assert!(matches!(after(&mut course, freed, &look).0, Fares::Held(_)));
        let after_that = if quiet {
            after(&mut course, freed + MINUTE, &look)
        } else {
            after(&mut course, freed + SECOND, &copies(6, 9))
        };
        assert_eq!(after_that, (Fares::Copying, freed), "quiet: {quiet}");
        assert_eq!(course.held(), None);
    }
}

#[test]
fn a_short_line_up_is_not_shown_and_a_long_one_from_its_beginning() {
    let mut course = Course::new(START);
    let look = copies(5, 5);
    course.handle_look(START, &look);
    let begun = START + MINUTE;
    let away = does(Doing::Approaching, &look);
    assert_eq!(after(&mut course, begun, &away), (Fares::CaughtUp, START));
    assert_eq!(after(&mut course, begun + SECOND, &look), (Fares::CaughtUp, START));
    course.handle_look(begun + MINUTE, &away);
    assert_eq!(after(&mut course, begun + MINUTE + LASTS, &away), (Fares::Waiting, begun + MINUTE));
    let back = begun + MINUTE * 3;
    assert_eq!(after(&mut course, back, &look), (Fares::CaughtUp, back));
}

#[test]
fn what_blocks_it_is_shown_at_once_and_one_waiting_is_one() {
    let mut course = Course::new(START);
    let look = copies(5, 5);
    course.handle_look(START, &look);
    let blocked = Look { blocked: Some(None), ..look };
    let since = START + MINUTE;
    assert_eq!(after(&mut course, since, &blocked), (Fares::Waiting, since));
    // No longer that, but lining up: still not back.
    let away = does(Doing::Approaching, &look);
    assert_eq!(after(&mut course, since + SECOND, &away), (Fares::Waiting, since));
    let trouble = Look { blocked: Some(Some(since + SECOND)), ..look };
    assert_eq!(after(&mut course, since + MINUTE, &trouble), (Fares::Waiting, since));
    let back = since + MINUTE * 2;
    assert_eq!(after(&mut course, back, &look), (Fares::CaughtUp, back));
    // Trouble is told of late, and counts from its beginning.
    let trouble = Look { blocked: Some(Some(back + SECOND)), ..look };
    assert_eq!(after(&mut course, back + MINUTE, &trouble), (Fares::Waiting, back + SECOND));
}

#[test]
fn who_comes_to_rest_keeps_what_kept_it() {
    let reason = deleted();
    let look = copies(5, 9);
    let stopped = does(Doing::Stopped, &look);
    let mut held = Course::new(START);
    held.handle_look(START, &does(Doing::Held(&reason), &look));
    assert!(matches!(after(&mut held, START + MINUTE, &stopped).0, Fares::Held(_)));
    assert_eq!((held.held(), held.since()), (Some(&reason), START));
    let mut waiting = Course::new(START);
    assert_eq!(after(&mut waiting, START + MINUTE, &stopped), (Fares::Waiting, START));
    let mut level = Course::new(START);
    level.handle_look(START, &look);
    let rest = does(Doing::Stopped, &copies(9, 9));
    assert_eq!(after(&mut level, START + SECOND, &rest).0, Fares::CaughtUp);
}
