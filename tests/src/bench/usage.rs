//! What a process has used so far, as `/proc` tells: CPU time and peak memory.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// Up to the moment of asking; of the process itself with all its threads, not of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// User and system time, in steps of a clock tick (10 ms).
    pub cpu: Duration,
    /// Highest resident set in KiB (VmHWM).
    pub peak_kib: u64,
}

impl Usage {
    /// Of a running process.
    ///
    /// # Errors
    /// When there is no such process, or the system shows no `/proc`.
    pub fn of(process: u32) -> Result<Self> {
        let status = read(process, "status")?;
        let peak_kib = peak_kib(&status).with_context(|| format!("no VmHWM in {status:?}"))?;
        Ok(Self { cpu: cpu(process)?, peak_kib })
    }
}

/// CPU time alone, which a process tells until somebody has waited for its end.
///
/// # Errors
/// As [`Usage::of`].
pub fn cpu(process: u32) -> Result<Duration> {
    let stat = read(process, "stat")?;
    let ticks = cpu_ticks(&stat).with_context(|| format!("no CPU times in {stat:?}"))?;
    let per_second = rustix::param::clock_ticks_per_second();
    #[allow(clippy::cast_precision_loss, reason = "ticks of hours fit")]
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

fn read(process: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{process}/{file}");
    fs::read_to_string(&path).with_context(|| format!("read {path}"))
}

/// utime + stime of `/proc/PID/stat`. The name in brackets may hold spaces and brackets itself.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11); // behind the name: state is the first
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn peak_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "77 (a ) R 1 (b) S 1 77 77 0 -1 4194304 5417 0 3 0 1234 66 7 8 20 0 4 0 9000 1 2 3";
        assert_eq!(cpu_ticks(stat), Some(1300));
        assert_eq!(cpu_ticks("77 (cut) S 1"), None);
    }

    #[test]
    fn this_process_uses_more_and_more() {
        let before = Usage::of(std::process::id()).unwrap();
        let filled = std::hint::black_box(vec![1_u8; 64 << 20]);
        let mut now = before;
        while now.cpu == before.cpu {
            std::hint::black_box(filled.iter().filter(|&&byte| byte == 1).count());
            now = Usage::of(std::process::id()).unwrap();
        }
        assert!(now.cpu > before.cpu);
        assert!(now.peak_kib >= before.peak_kib && now.peak_kib > 64 << 10, "{now:?}");
    }
}
