//! A run that ends by itself, and what it used.

use std::{fs, path::Path, process::Command, time::Duration};

use anyhow::Result;

use crate::{
    bench::usage::{Usage, cpu},
    deadline::Deadline,
    process::{Process, exit_code},
};

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Exit code, or 128 + the signal.
    pub code: i32,
    /// User and system time of the whole run, in steps of a clock tick (10 ms).
    pub cpu: Duration,
    /// Highest resident set in KiB, as seen shortly before the end.
    pub peak_kib: u64,
    /// All that it printed.
    pub said: String,
}

/// Runs `command` to its end; its output goes into `log`.
///
/// # Errors
/// When it cannot be started or still runs after `limit`.
pub fn run(command: Command, log: &Path, limit: Duration) -> Result<Ended> {
    let mut process = Process::start("twinlog", command, log)?;
    let mut peak_kib = 0;
    // Until somebody waits for it, a process that has ended still tells its times, but no longer its memory.
    let cpu = Deadline::after(limit).wait("the end of twinlog", || match Usage::of(process.id()) {
        Ok(usage) => {
            peak_kib = usage.peak_kib;
            Ok(None)
        }
        Err(_) => cpu(process.id()).map(Some),
    })?;
    let status = process.wait(Duration::from_secs(10))?;
    let said = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    Ok(Ended { code: exit_code(status), cpu, peak_kib, said })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places;

    #[test]
    fn a_run_tells_its_end_its_words_and_its_work() {
        let log = places::scratch().join("run.log");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done; echo counted; exit 7"]);
        let ended = run(shell, &log, Duration::from_secs(60)).unwrap();
        assert_eq!((ended.code, ended.said.as_str()), (7, "counted\n"));
        assert!(ended.cpu > Duration::ZERO && ended.peak_kib > 0, "{ended:?}");
    }
}
