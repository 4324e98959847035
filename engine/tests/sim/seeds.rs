//! Seeds that failed once, with what they found.

use super::plan::{Family, Plan};
use super::run;

const FAILED_ONCE: &[(Family, u64, &str)] = &[
    (Family::Forgotten, 95_929, "a decision was carried out at another leader than the one that was asked"),
    (Family::Forgotten, 138_610, "the model's deposed leader counted its replicas by a later epoch"),
    (Family::Alone, 82_323, "a stop that waits for a lost answer takes longer than 10 s"),
    (Family::Alone, 121_687, "the model's cleaner dropped committed records for uncommitted ones"),
    (Family::Rivals, 45_028, "the source's log start passed a lagging instance twice"),
    (Family::Rivals, 137_401, "the source's log was looked at, and the instance frozen"),
    (Family::Rivals, 184_850, "a held partition did not notice that its rival knew more"),
    (Family::Alone, 1_012_677, "a compacted source gave numbers between two stored runs to later records"),
    (
        Family::Rivals,
        1_020_769,
        "the model lost the producer state that rivals stand on, by retention and a restart",
    ),
];

#[test]
fn seeds_that_failed_once_pass() {
    for (family, seed, _) in FAILED_ONCE {
        // What they found they found before batches were merged.
        run::check(*family, [*seed], Plan::without_merging);
        run::check(*family, [*seed], run::as_drawn);
    }
}
