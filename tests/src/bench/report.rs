//! The table: medians of each peer, and how many times as much the others needed, with the spread over the rounds.

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

/// One figure of a measurement.
struct Column {
    title: &'static str,
    digits: usize,
    of: fn(&Measurement) -> Option<f64>,
}

const fn column(title: &'static str, digits: usize, of: fn(&Measurement) -> Option<f64>) -> Column {
    Column { title, digits, of }
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
const COLUMNS: [Column; 8] = [
    column("wall, s", 2, |round| Some(round.wall.as_secs_f64())),
    column("until the first record, s", 2, |round| Some(round.first.as_secs_f64())),
    column("copying, s", 2, |round| Some(round.copying().as_secs_f64())),
    column("CPU, s", 2, |round| Some(round.usage.cpu.as_secs_f64())),
    column("peak memory, MiB", 0, |round| Some(round.usage.peak_kib as f64 / 1024.0)),
    column("CPU of the target broker, s", 2, |round| Some(round.target_cpu.as_secs_f64())),
    column("on the target, MB", 0, |round| Some(round.target_bytes as f64 / 1e6)),
    column("idle, % of a core", 2, |round| round.idle.map(|share| share * 100.0)),
];

/// The Markdown table of all sections: for each peer a row of medians; then for each but the last a row that compares it with
/// the last, round by round: the median of the ratios, the least and the greatest.
#[must_use]
pub fn table(sections: &[Section]) -> String {
    let titles: Vec<&str> = COLUMNS.iter().map(|column| column.title).collect();
    let mut text =
        format!("| records | | {} |\n|---|---|{}\n", titles.join(" | "), "---|".repeat(COLUMNS.len()));
    for section in sections {
        for ((peer, rounds), number) in section.peers.iter().zip(0..) {
            let title = if number == 0 { format!(" {}", section.title) } else { String::new() };
            let cells = COLUMNS.iter().map(|column| cell(column, rounds));
            let _ = writeln!(text, "|{title} | {peer} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        let Some(((last, base), others)) = section.peers.split_last() else { continue };
        for (peer, rounds) in others {
            let row = |name: String, above: &[Measurement], below: &[Measurement]| {
                let cells = COLUMNS.iter().map(|column| ratio(column, above, below));
                format!("| | {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
            };
            // What twinlog is to be better than stands above the stroke, the ideal below it.
            text += &match peer {
                Peer::RawRelay => row(format!("{last} / {peer}"), base, rounds),
                _ => row(format!("{peer} / {last}"), rounds, base),
            };
        }
    }
    text
}

fn cell(column: &Column, rounds: &[Measurement]) -> String {
    match rounds.iter().map(column.of).collect::<Option<Vec<f64>>>() {
        Some(figures) => format!("{:.*}", column.digits, median(figures)),
        None => "-".to_owned(),
    }
}

/// Rounds in which there is nothing to divide by do not count.
fn ratio(column: &Column, above: &[Measurement], below: &[Measurement]) -> String {
    let rounds = above.iter().zip(below).filter_map(|(above, below)| {
        let base = (column.of)(below)?;
        if base > 0.0 { Some((column.of)(above)? / base) } else { None }
    });
    let ratios: Vec<f64> = rounds.collect();
    let least = ratios.iter().copied().reduce(f64::min);
    let greatest = ratios.iter().copied().reduce(f64::max);
    match (least, greatest) {
        (Some(least), Some(greatest)) if ratios.len() > 1 => {
            format!("{} × ({}–{})", digits(median(ratios)), digits(least), digits(greatest))
        }
        (Some(only), _) => format!("{} ×", digits(only)),
        _ => "-".to_owned(),
    }
}

/// Three digits at most.
fn digits(ratio: f64) -> String {
    let decimals = if ratio < 9.995 { 2 } else { usize::from(ratio < 99.95) };
    format!("{ratio:.decimals$}")
}

/// The middle one; of an even number the mean of the two in the middle, of none not a number.
#[must_use]
pub fn median(mut figures: Vec<f64>) -> f64 {
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
            "{:.2} s ({:.2} s until the first record), {:.2} s of CPU and {:.2} s in the target broker, {} MiB, \
             {} MB on the target",
            seconds(self.wall),
            seconds(self.first),
            seconds(self.usage.cpu),
            seconds(self.target_cpu),
            self.usage.peak_kib / 1024,
            self.target_bytes / 1_000_000
        )?;
        self.idle.map_or(Ok(()), |share| write!(f, ", idle {:.2} % of a core", share * 100.0))
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
            target_cpu: Duration::from_secs(4),
            target_bytes: 1_000_000_000,
            idle: None,
        }
    }

    fn rows(peers: Vec<(Peer, Vec<Measurement>)>) -> Vec<String> {
        let table = table(&[Section { title: "1 of 1 KB".to_owned(), peers }]);
        table.lines().skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn medians_stand_in_the_table_and_ratios_of_rounds_below_them() {
        let rows = rows(vec![
            (Peer::MirrorMaker, vec![measured(30, 9000), measured(10, 8000), measured(20, 7000)]),
            (Peer::Twinlog, vec![measured(2, 1000), measured(4, 500), measured(2, 1000)]),
        ]);
        assert_eq!(
            rows,
            [
                "| 1 of 1 KB | MM2 4.3.1 | 20.00 | 1.00 | 19.00 | 8.00 | 20 | 4.00 | 1000 | - |",
                "| | twinlog | 2.00 | 1.00 | 1.00 | 1.00 | 20 | 4.00 | 1000 | - |",
                "| | MM2 4.3.1 / twinlog | 10.0 × (2.50–15.0) | 1.00 × (1.00–1.00) | 19.0 × (3.00–29.0) | \
                 9.00 × (7.00–16.0) | 1.00 × (1.00–1.00) | 1.00 × (1.00–1.00) | 1.00 × (1.00–1.00) | - |",
            ]
        );
    }

    #[test]
    fn twinlog_is_compared_with_the_relay_the_other_way_round() {
        let idle = |measured: Measurement, idle| Measurement { idle: Some(idle), ..measured };
        let rows = rows(vec![
            (Peer::RawRelay, vec![idle(measured(4, 200), 0.0)]),
            (Peer::Twinlog, vec![idle(measured(5, 300), 0.012)]),
        ]);
        assert_eq!(
            rows[2],
            "| | twinlog / raw relay | 1.25 × | 1.00 × | 1.33 × | 1.50 × | 1.00 × | 1.00 × | 1.00 × | - |"
        );
        assert!(rows[1].ends_with("| 1.20 |"), "{}", rows[1]);
    }

    #[test]
    fn of_nothing_there_is_no_median() {
        assert!(median(Vec::new()).is_nan());
    }
}
