//! The table: medians of each peer, and how many times as much the others needed.

use std::{
    fmt::{self, Write as _},
    fs,
    time::Duration,
};

use super::{peer::Peer, race::Measurement};

/// All rounds of one workload.
#[derive(Clone, Debug)]
pub struct Section {
    /// First column.
    pub title: String,
    /// Measurements of each peer.
    pub peers: Vec<(Peer, Vec<Measurement>)>,
}

/// One line of figures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    wall_s: f64,
    first_s: f64,
    cpu_s: f64,
    peak_mib: f64,
    target_mb: f64,
}

impl Row {
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn medians(rounds: &[Measurement]) -> Self {
        let of = |figure: fn(&Measurement) -> f64| median(rounds.iter().map(figure).collect());
        Self {
            wall_s: of(|round| round.wall.as_secs_f64()),
            first_s: of(|round| round.first.as_secs_f64()),
            cpu_s: of(|round| round.usage.cpu.as_secs_f64()),
            peak_mib: of(|round| round.usage.peak_kib as f64 / 1024.0),
            target_mb: of(|round| round.target_bytes as f64 / 1e6),
        }
    }
}

/// The Markdown table of all sections: a row for each peer, and one for each but the last with the ratio to the last.
#[must_use]
pub fn table(sections: &[Section]) -> String {
    let mut text = String::from(
        "| records | | wall, s | of it until the first record, s | CPU, s | peak memory, MiB | on the target, MB |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for section in sections {
        let rows: Vec<(Peer, Row)> =
            section.peers.iter().map(|(peer, rounds)| (*peer, Row::medians(rounds))).collect();
        for ((peer, row), number) in rows.iter().zip(0..) {
            let title = if number == 0 { format!(" {}", section.title) } else { String::new() };
            let Row { wall_s, first_s, cpu_s, peak_mib, target_mb } = row;
            let _ = writeln!(
                text,
                "|{title} | {peer} | {wall_s:.1} | {first_s:.1} | {cpu_s:.2} | {peak_mib:.0} | {target_mb:.0} |"
            );
        }
        let Some(((last, base), others)) = rows.split_last() else { continue };
        for (peer, row) in others {
            let _ = writeln!(
                text,
                "| | {peer} / {last} | {} | {} | {} | {} | {} |",
                times(row.wall_s, base.wall_s),
                times(row.first_s, base.first_s),
                times(row.cpu_s, base.cpu_s),
                times(row.peak_mib, base.peak_mib),
                times(row.target_mb, base.target_mb),
            );
        }
    }
    text
}

fn times(figure: f64, base: f64) -> String {
    if base > 0.0 { format!("{:.1} ×", figure / base) } else { "-".to_owned() }
}

/// The middle one; of an even number the mean of the two in the middle.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Duration| time.as_secs_f64();
        write!(
            f,
            "{:.1} s ({:.1} s until the first record), {:.2} s of CPU, {} MiB, {} MB on the target",
            seconds(self.wall),
            seconds(self.first),
            seconds(self.usage.cpu),
            self.usage.peak_kib / 1024,
            self.target_bytes / 1_000_000
        )
    }
}

/// One line about the machine, with its load: figures of a busy machine are worth little.
#[must_use]
pub fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let after_colon = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = after_colon(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown CPU".to_owned());
    let memory = after_colon(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let kib: u64 = memory.trim_end_matches("kB").trim().parse().unwrap_or(0);
    let load = read("/proc/loadavg").split(' ').next().unwrap_or("?").to_owned();
    format!("{cores} cores ({model}), {} GiB, load {load}", kib >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::usage::Usage;

    fn measured(wall_s: u64, cpu_ms: u64) -> Measurement {
        Measurement {
            wall: Duration::from_secs(wall_s),
            first: Duration::from_secs(1),
            usage: Usage { cpu: Duration::from_millis(cpu_ms), peak_kib: 20 << 10 },
            target_bytes: 1_000_000_000,
        }
    }

    #[test]
    fn medians_stand_in_the_table_and_ratios_below_them() {
        let section = Section {
            title: "1 of 1 KB".to_owned(),
            peers: vec![
                (Peer::MirrorMaker, vec![measured(30, 9000), measured(10, 8000), measured(20, 7000)]),
                (Peer::Twinlog, vec![measured(2, 1000), measured(3, 3000)]),
            ],
        };
        let table = table(&[section]);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| 1 of 1 KB | MM2 4.3.1 | 20.0 | 1.0 | 8.00 | 20 | 1000 |",
                "| | twinlog | 2.5 | 1.0 | 2.00 | 20 | 1000 |",
                "| | MM2 4.3.1 / twinlog | 8.0 × | 1.0 × | 4.0 × | 1.0 × | 1.0 × |",
            ]
        );
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(times(3.0, 0.0), "-");
        assert!(median(Vec::new()).is_nan());
    }
}
