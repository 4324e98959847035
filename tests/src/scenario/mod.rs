//! Scenarios on real clusters: the same functions for `cargo test` (small) and the `full` program (the figures).

mod batches;
pub mod codecs;
pub mod compaction;
pub mod configs;
pub mod copy;
pub mod cuts;
pub mod flows;
pub mod identity;
pub mod kills;
pub mod kinds;
mod lab;
pub mod lies;
mod load;
pub mod losses;
pub mod memory;
pub mod merging;
pub mod parity;
pub mod quotas;
pub mod racks;
pub mod random;
pub mod resume;
pub mod standing;
pub mod start;
pub mod state;
pub mod target;
pub mod topics;
pub mod transactions;

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result};

pub use lab::{Lab, LabSpec};
pub use load::LiveLoad;

use crate::{lies::Lie, places};

/// How much of a scenario is run.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Kills at random moments.
    pub kills: u32,
    /// Duration of what is done for a while.
    pub seconds: u64,
    /// Seed of the random moments; printed, so that a run can be repeated.
    pub seed: u64,
}

impl Scale {
    /// What fits into CI.
    #[must_use]
    pub fn small() -> Self {
        Self { kills: 3, seconds: 10, seed: fastrand::u64(..) }
    }

    /// How often each broker is killed in turn: five times in a run of twenty kills.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        (self.kills / 4).max(1)
    }

    /// Topics of a source where it is their number that matters: 200 in a run of twenty kills.
    #[must_use]
    pub fn topics(&self) -> u32 {
        if self.kills < 20 { 20 } else { 200 }
    }

    /// Records of a topic that is compacted while it is copied: 5,000,000 in a run of twenty kills.
    #[must_use]
    pub fn compacted_records(&self) -> u32 {
        if self.kills < 20 { 50_000 } else { 5_000_000 }
    }

    /// Batches made at random: 10,000 in a run of twenty kills.
    #[must_use]
    pub fn random_batches(&self) -> u32 {
        if self.kills < 20 { 500 } else { 10_000 }
    }

    /// In how many ways an answer of each kind lies: each in one in a small run, in all five in a run of twenty kills.
    #[must_use]
    pub fn lies_per_kind(&self) -> usize {
        Lie::ALL.len().min(self.rounds() as usize)
    }

    /// The random moments of this run.
    #[must_use]
    pub fn random(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed)
    }
}

/// Counts that a scenario reports, by name.
#[derive(Clone, Debug, Default)]
pub struct Figures(BTreeMap<&'static str, u64>);

impl Figures {
    /// Adds a count.
    #[must_use]
    pub fn with(mut self, name: &'static str, count: u64) -> Self {
        self.0.insert(name, count);
        self
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|(name, count)| format!("{count} {name}")).collect();
        f.write_str(&all.join(", "))
    }
}

/// What a scenario does: it fails with the reason, or reports its counts.
type Body = Box<dyn Fn(&mut Lab, &Scale) -> Result<Figures> + Send + Sync>;

/// Runs a scenario at the size that fits into CI.
///
/// # Errors
/// What it failed with.
pub fn check(scenario: &Scenario) -> Result<()> {
    run(scenario, &Scale::small()).map(drop)
}

/// One thing to be shown on real clusters.
pub struct Scenario {
    /// A sentence without a full stop.
    pub name: String,
    /// The clusters it needs.
    pub lab: LabSpec,
    /// Whether the clusters must be new, and are not used again afterwards.
    pub alone: bool,
    body: Body,
}

impl Scenario {
    /// A scenario that may run on clusters that others used: its topics must have names of their own.
    fn shared(
        name: impl Into<String>,
        lab: LabSpec,
        body: impl Fn(&mut Lab, &Scale) -> Result<Figures> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), lab, alone: false, body: Box::new(body) }
    }

    /// A scenario that needs new clusters.
    fn alone(
        name: impl Into<String>,
        lab: LabSpec,
        body: impl Fn(&mut Lab, &Scale) -> Result<Figures> + Send + Sync + 'static,
    ) -> Self {
        Self { alone: true, ..Self::shared(name, lab, body) }
    }
}

/// Runs a scenario; one at a time in this process, and in all processes of this target folder.
///
/// Clusters stay for the next scenario when it wants the same ones. After a failure they are not used again and every
/// file of this process is kept.
///
/// # Errors
/// What the scenario found, with the place of the logs.
pub fn run(scenario: &Scenario, scale: &Scale) -> Result<Figures> {
    static KEPT: Mutex<Option<Lab>> = Mutex::new(None);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let lock = lock_machine()?;
    let fits = kept.as_ref().is_some_and(|lab| !scenario.alone && *lab.spec() == scenario.lab);
    let reused = if fits { kept.take() } else { None };
    *kept = None; // other clusters stop before new ones start
    let outcome = reused.map_or_else(|| Lab::start(&scenario.lab), Ok).and_then(|mut lab| {
        let figures = (scenario.body)(&mut lab, scale);
        if figures.is_err() {
            places::keep();
        }
        figures.map(|figures| (figures, lab))
    });
    drop(lock);
    let (figures, lab) = outcome.with_context(|| {
        places::keep();
        format!("{} (seed {}; all logs: {})", scenario.name, scale.seed, places::scratch().display())
    })?;
    if !scenario.alone {
        *kept = Some(lab);
    }
    println!("{}: {figures}", scenario.name);
    Ok(figures)
}

/// Only one test process at a time loads the machine with brokers.
fn lock_machine() -> Result<File> {
    let folder = places::target()?.join("kafka");
    fs::create_dir_all(&folder)?;
    let file = File::create(folder.join("machine.lock"))?;
    file.lock().context("lock the machine for one test of real brokers")?;
    Ok(file)
}
