//! What a seed draws: size of the world, which faults may happen, and how often.

use std::time::Duration;

use fastrand::Rng;
use twinlog_engine::machine::loss::{LossPolicy, OnLoss, OnTargetLoss};
use twinlog_engine::machine::partition::MergeSizes;

/// Which premises of exactly-once a schedule keeps, and hence what may go wrong in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// One instance, producer state kept, everything else may fail.
    Alone,
    /// Two or three instances at once, from the very first start, producer state kept.
    Rivals,
    /// One to three instances of which most are to begin at the source's ends, crashes and writes at their first start,
    /// producer state kept.
    Latest,
    /// One instance, producer state expires at any step; no request outlives its connection.
    Forgotten,
}

/// What may happen at one tick of the fault clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    CrashInstance,
    StopInstance,
    FreezeInstance,
    CutConnection,
    LoseAnswer,
    KillNode,
    MoveLeader,
    SleepReplica,
    ShrinkIsr,
    ForeignRecords,
    CompactState,
    CompactSource,
    SourceOutage,
    Expire,
    Refresh,
    MoveSourceStart,
    RecreateSource,
    RecreateTarget,
    RefuseBatches,
    TrimTarget,
}

const ALL: [Fault; 20] = [
    Fault::CrashInstance,
    Fault::StopInstance,
    Fault::FreezeInstance,
    Fault::CutConnection,
    Fault::LoseAnswer,
    Fault::KillNode,
    Fault::MoveLeader,
    Fault::SleepReplica,
    Fault::ShrinkIsr,
    Fault::ForeignRecords,
    Fault::CompactState,
    Fault::CompactSource,
    Fault::SourceOutage,
    Fault::Expire,
    Fault::Refresh,
    Fault::MoveSourceStart,
    Fault::RecreateSource,
    Fault::RecreateTarget,
    Fault::RefuseBatches,
    Fault::TrimTarget,
];

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) instances: usize,
    pub(crate) partitions: usize,
    pub(crate) nodes: usize,
    pub(crate) isr_min: usize,
    /// Source batches there at the start, and appended later.
    pub(crate) batches_before: usize,
    pub(crate) batches_later: usize,
    pub(crate) hole_chance: f64,
    pub(crate) recut: bool,
    pub(crate) faults: Vec<Fault>,
    pub(crate) faults_for: Duration,
    pub(crate) fault_gap: Duration,
    /// Longest delay of a message, of a replica's fetch, of news about a leader.
    pub(crate) delay: Duration,
    pub(crate) late_requests: bool,
    pub(crate) shared_lane: bool,
    pub(crate) first_sequence: i32,
    pub(crate) first_epoch: i16,
    pub(crate) backlog_bytes_max: usize,
    pub(crate) merge_sizes: MergeSizes,
    /// The largest batch that a topic of the target takes.
    pub(crate) batch_bytes_max: usize,
    /// Fingerprint of each instance's options.
    pub(crate) fingerprints: Vec<u64>,
    /// Whether each instance's file says `latest`.
    pub(crate) latest: Vec<bool>,
    /// Everybody reads committed records only, and some of the source's are in transactions.
    pub(crate) committed: bool,
    /// What everybody does about losses. Where they go on, retention overtakes them.
    pub(crate) losses: LossPolicy,
}

impl Plan {
    pub(crate) fn draw(family: Family, rng: &mut Rng) -> Self {
        let instances = match family {
            Family::Rivals => rng.usize(2..=3),
            Family::Latest => rng.usize(1..=3),
            Family::Alone | Family::Forgotten => 1,
        };
        let late_requests = family != Family::Forgotten && rng.bool();
        let fits = |fault: &Fault| fits(family, late_requests, *fault);
        let faults = ALL.into_iter().filter(|fault| rng.bool() && fits(fault)).collect();
        let nodes = if rng.u8(..4) == 0 { 1 } else { 3 };
        let near_wrap = i32::MAX - rng.i32(0..60);
        // Of its own, so that schedules without merging stay what they were.
        let mut merging = Rng::with_seed(rng.clone().u64(..));
        let batch_bytes_max = [usize::MAX, usize::MAX, 300, 600][merging.usize(..4)];
        // Batches of the source, of up to 11 records, are cut for these; the least takes one record.
        let cuts = Rng::with_seed(merging.clone().u64(..)).usize(..8);
        let batch_bytes_max = [90, 150].get(cuts).copied().unwrap_or(batch_bytes_max);
        Self {
            instances,
            partitions: rng.usize(1..=3),
            nodes,
            // As with batches that are refused: 19 must not come while the broker has no state.
            isr_min: if family == Family::Forgotten { 1 } else { nodes.div_ceil(2) },
            batches_before: rng.usize(0..30),
            batches_later: rng.usize(5..60),
            hole_chance: [0.0, 0.05, 0.3][rng.usize(..3)],
            recut: rng.bool(),
            faults,
            faults_for: Duration::from_secs(rng.u64(5..90)),
            fault_gap: Duration::from_millis([50, 300, 2000, 8000][rng.usize(..4)]),
            delay: Duration::from_millis([2, 10, 60, 500][rng.usize(..4)]),
            late_requests,
            shared_lane: rng.bool(),
            first_sequence: if rng.u8(..4) == 0 { near_wrap } else { 0 },
            first_epoch: if rng.u8(..16) == 0 { i16::MAX - rng.i16(0..3) } else { rng.i16(1..8191) },
            backlog_bytes_max: [200, 1500, 1 << 20][rng.usize(..3)],
            merge_sizes: merge_sizes(family, batch_bytes_max, &mut merging),
            batch_bytes_max,
            fingerprints: (0..instances).map(|_| if rng.u8(..12) == 0 { 8 } else { 7 }).collect(),
            latest: (0..instances).map(|_| family == Family::Latest && rng.u8(..6) > 0).collect(),
            committed: false,
            losses: LossPolicy { on_loss: OnLoss::Hold, ..LossPolicy::default() },
        }
    }

    /// Committed records are copied, no others.
    pub(crate) fn committed(&mut self) {
        self.committed = true;
    }

    /// The source loses records before they are copied, and topics are made again; the copy goes on.
    pub(crate) fn losing(&mut self) {
        let on_target_loss =
            [OnTargetLoss::Hold, OnTargetLoss::Recopy, OnTargetLoss::Continue][self.batches_later % 3];
        self.losses = LossPolicy { on_loss: OnLoss::Continue, on_target_loss, skips_refused: false };
        let always = [Fault::MoveSourceStart, Fault::RecreateSource, Fault::RecreateTarget];
        self.faults
            .extend(always.iter().filter(|fault| !self.faults.contains(fault)).copied().collect::<Vec<_>>());
        self.fingerprints.fill(7);
    }

    /// Whether the copy goes on behind what the source has lost.
    pub(crate) fn goes_on(&self) -> bool {
        self.losses.on_loss == OnLoss::Continue
    }

    /// Every batch goes as the source has it.
    pub(crate) fn without_merging(&mut self) {
        let MergeSizes { sure_bytes, .. } = self.merge_sizes;
        if self.batch_bytes_max < 300 {
            self.batch_bytes_max = usize::MAX;
        }
        self.merge_sizes =
            MergeSizes { small_bytes: 0, small_merged_bytes_max: 0, merged_bytes_max: 0, sure_bytes };
    }

    pub(crate) fn may(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}

fn merge_sizes(family: Family, batch_bytes_max: usize, rng: &mut Rng) -> MergeSizes {
    let sure_bytes = [0, 300, 16 << 10][rng.usize(..3)];
    MergeSizes {
        small_bytes: [100, 4 << 10][rng.usize(..2)],
        small_merged_bytes_max: [250, 1000, 64 << 10][rng.usize(..3)],
        merged_bytes_max: [500, 3000, 1_000_000][rng.usize(..3)],
        // As with batches that are refused: none with others behind it must be while the broker has no state.
        sure_bytes: if family == Family::Forgotten { sure_bytes.min(batch_bytes_max) } else { sure_bytes },
    }
}

/// Whether the family's premises survive the fault.
fn fits(family: Family, late_requests: bool, fault: Fault) -> bool {
    match fault {
        Fault::Expire => family == Family::Forgotten,
        // Batches read before and after a compaction of the source number records differently, and a repeat is
        // recognised by its numbers alone.
        Fault::CompactSource => !matches!(family, Family::Rivals | Family::Latest) && !late_requests,
        // A batch that is refused while the broker has no state, with another behind it that is taken, leaves a hole
        // which nobody can mend: the partition is held then (`resume`).
        Fault::RefuseBatches => family != Family::Forgotten,
        _ => true,
    }
}
