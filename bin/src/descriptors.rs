//! File descriptors: a connection each, so as many as the system gives.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Connections to a few brokers, with room for both clusters' lanes.
const ENOUGH: u64 = 256;

/// Raises the soft limit to the hard one; a sentence when that is still little.
pub(crate) fn raise_limit() -> Option<String> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Refused only where the hard limit moved meanwhile; the old one stays.
    let _ = setrlimit(Resource::Nofile, limit);
    let count = getrlimit(Resource::Nofile).current?;
    (count < ENOUGH).then(|| {
        format!("only {count} file descriptors (ulimit -n): connections will fail; allow at least {ENOUGH}")
    })
}
