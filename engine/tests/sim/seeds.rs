//! Seeds that failed once, with what they found.

use super::plan::Family;
use super::run;

const FAILED_ONCE: &[(Family, u64, &str)] = &[];

#[test]
fn seeds_that_failed_once_pass() {
    for (family, seed, _) in FAILED_ONCE {
        run::check(*family, [*seed]);
    }
}
