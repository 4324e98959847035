//! The table of copies between source and sink of our own: rate and CPU per byte.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use super::{report::median, usage::Usage};

/// One copy.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    /// From the first byte that arrived to the last one.
    pub copying: Duration,
    /// What the process had used by then, its start included.
    pub usage: Usage,
    /// Bytes that crossed.
    pub bytes: u64,
}

impl Crossing {
    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn gigabytes(&self) -> f64 {
        self.bytes as f64 / 1e9
    }

    fn rate(&self) -> f64 {
        self.gigabytes() / self.copying.as_secs_f64()
    }

    fn cpu_per_gigabyte(&self) -> f64 {
        self.usage.cpu.as_secs_f64() / self.gigabytes()
    }

    #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn peak_mib(&self) -> f64 {
        self.usage.peak_kib as f64 / 1024.0
    }
}

impl fmt::Display for Crossing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, cpu, peak) = (self.rate(), self.cpu_per_gigabyte(), self.peak_mib());
        write!(f, "{rate:.2} GB/s, {cpu:.3} s of CPU per GB, {peak:.0} MiB")
    }
}

/// A row of medians for each, and one with the last one's figures divided by those of each other.
#[must_use]
pub fn table(rows: &[(&str, Vec<Crossing>)]) -> String {
    let mut text = String::from("| | GB/s | CPU, s per GB | peak memory, MiB |\n|---|---|---|---|\n");
    let of =
        |crossings: &[Crossing], figure: fn(&Crossing) -> f64| median(crossings.iter().map(figure).collect());
    for (name, crossings) in rows {
        let (rate, cpu) = (of(crossings, Crossing::rate), of(crossings, Crossing::cpu_per_gigabyte));
        let _ =
            writeln!(text, "| {name} | {rate:.2} | {cpu:.3} | {:.0} |", of(crossings, Crossing::peak_mib));
    }
    let Some(((last, base), others)) = rows.split_last() else { return text };
    for (name, crossings) in others {
        let ratio = |figure: fn(&Crossing) -> f64| of(base, figure) / of(crossings, figure);
        let (rate, cpu) = (ratio(Crossing::rate), ratio(Crossing::cpu_per_gigabyte));
        let _ = writeln!(
            text,
            "| {last} / {name} | {rate:.2} × | {cpu:.2} × | {:.1} × |",
            ratio(Crossing::peak_mib)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_costs_are_per_gigabyte() {
        let crossing = |seconds, cpu_ms| Crossing {
            copying: Duration::from_secs(seconds),
            usage: Usage { cpu: Duration::from_millis(cpu_ms), peak_kib: 4 << 10 },
            bytes: 4_000_000_000,
        };
        let rows =
            [("relay", vec![crossing(2, 800)]), ("twinlog", vec![crossing(4, 1000), crossing(4, 1400)])];
        let table = table(&rows);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| relay | 2.00 | 0.200 | 4 |",
                "| twinlog | 1.00 | 0.300 | 4 |",
                "| twinlog / relay | 0.50 × | 1.50 × | 1.0 × |",
            ]
        );
    }
}
