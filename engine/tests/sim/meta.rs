//! The simulation itself.

use super::plan::Family;
use super::run::{as_drawn, run};
use super::trace::Trace;

#[test]
fn the_same_seed_gives_the_same_trace() {
    for family in [Family::Alone, Family::Rivals, Family::Latest, Family::Forgotten] {
        for seed in 0..5 {
            let [first, second] = [(); 2].map(|()| {
                let mut trace = Trace::recording();
                run(family, seed, as_drawn, &mut trace);
                trace.lines
            });
            assert!(first.as_ref().is_some_and(|lines| lines.len() > 50));
            assert_eq!(first, second);
        }
    }
}
