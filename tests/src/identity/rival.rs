//! One instance of one partition: feeds the machine, carries out its commands, and crashes from time to time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{task::JoinSet, time::sleep};
use twinlog_engine::{
    clock::boot_time,
    io::cluster::ClusterClient,
    machine::{
        Now,
        hold::Side,
        line_up::{LastBatch, Question},
        partition::{
            Command, CopySearch, Event, Fetched, Leader, PartitionMachine, RequestFailure, SourceSpan,
        },
        partition_record::{PartitionEntry, PartitionRecord},
        produce_window::ProduceAnswer,
        resume::Tail,
    },
};

use super::{Field, ask::Place, shared_log::Stored, wire::Wire};

/// The made-up source is led like this for ever.
const SOURCE: Leader = Leader { node: Some(0), leader_epoch: 0, topic_id: 1 };
/// The longest time between two looks at the state log.
const LOOK_EVERY: Duration = Duration::from_millis(25);
/// Lives last up to this long.
const LIFE_MAX_MS: u64 = 8000;

/// How an errand ended.
enum Done {
    Offset(u64, Question, Result<i64, RequestFailure>),
    LastBatch(u64, Result<Option<LastBatch>, RequestFailure>),
    Tail(u64, Result<Tail, RequestFailure>),
    Copy(u64, Result<CopySearch, RequestFailure>),
    SourceSpan(u64),
    StateRead(u64, usize),
    Stored(Option<u64>, Stored),
    Produced(u64, ProduceAnswer),
    Fetch(i64),
    Refreshed,
}

/// An instance of a partition.
pub(super) struct Rival {
    field: Arc<Field>,
    cluster: ClusterClient,
    instance: usize,
    partition: usize,
    left_out: u64,
    random: fastrand::Rng,
    wire: Wire,
    life: Life,
}

/// What ends with the process.
struct Life {
    /// Number of the process, for the state log.
    process: u64,
    machine: PartitionMachine,
    /// Entries of the state log that the machine knows.
    read_to: usize,
    target: Option<Leader>,
    errands: JoinSet<Done>,
    ends: Now,
    stopping: bool,
}

impl Rival {
    pub(super) fn new(
        field: Arc<Field>,
        cluster: ClusterClient,
        instance: usize,
        partition: usize,
        left_out: u64,
        mut random: fastrand::Rng,
    ) -> Self {
        let wire = Wire::new(Arc::clone(&field), random.fork());
        let life = Life::begin(&field, partition, &mut random);
        Self { field, cluster, instance, partition, left_out, random, wire, life }
    }

    /// Copies until all are to stop.
    pub(super) async fn run(mut self) {
        let mut metadata = self.cluster.watch_metadata();
        self.tell_leaders(true);
        loop {
            let now = boot_time();
            self.tell_leaders(false);
            self.read_state(None);
            if self.field.is_stopping() && !self.life.stopping {
                self.life.stopping = true;
                self.life.machine.handle_stop(now);
            } else if !self.life.stopping && self.life.ends <= now {
                self.crash();
            }
            if self.life.machine.next_timeout().is_some_and(|at| at <= now) {
                self.life.machine.handle_timeout(now);
            }
            if self.life.machine.wants_turn() {
                self.life.machine.handle_turn(now);
            }
            while let Some(command) = self.life.machine.poll_command() {
                self.carry_out(command).await;
            }
            if self.life.machine.is_stopped() && self.life.errands.is_empty() {
                return self.wire.rest().await;
            }
            self.fetch(now);
            let due = match self.life.machine.next_timeout() {
                _ if self.life.machine.wants_turn() => Duration::ZERO,
                at => at.map_or(LOOK_EVERY, |at| at.saturating_sub(boot_time())),
            };
            tokio::select! {
                Some(done) = self.life.errands.join_next(), if !self.life.errands.is_empty() => match done {
                    Ok(done) => self.handle_done(done),
                    Err(panic) => self.field.fault(format!("an errand panicked: {panic}")),
                },
                _ = metadata.changed() => {}
                () = sleep(due.min(LOOK_EVERY)) => {}
            }
        }
    }

    /// The process vanishes, and another one knows what the state log says.
    fn crash(&mut self) {
        self.field.counts.crashes.fetch_add(1, Ordering::Relaxed);
        self.wire.crash();
        self.life = Life::begin(&self.field, self.partition, &mut self.random);
        self.tell_leaders(true);
    }

    fn tell_leaders(&mut self, always: bool) {
        let metadata = self.cluster.metadata();
        let topic = metadata.topics.get(&self.field.topic);
        let target = topic.and_then(|topic| {
            let known = topic.partitions.get(&partition_number(self.partition))?;
            Some(Leader { node: known.leader, leader_epoch: known.leader_epoch, topic_id: topic.id })
        });
        if always || target != self.life.target {
            self.life.target = target;
            self.life.machine.handle_leaders(boot_time(), Some(SOURCE), target);
        }
    }

    /// Gives the machine entries of the state log: up to `to`, else all there are, or sometimes none yet.
    fn read_state(&mut self, to: Option<usize>) {
        let log = &self.field.logs[self.partition];
        let to = match to {
            Some(to) => to,
            None if self.random.bool() => log.len(),
            None => return,
        };
        for entry in log.read(self.life.read_to, to) {
            self.life.machine.handle_state(&entry);
        }
        self.life.read_to = self.life.read_to.max(to);
    }

    fn fetch(&mut self, now: Now) {
        let Some(offset) = self.life.machine.fetch_wanted(now) else { return };
        self.life.machine.handle_fetch_sent(offset);
        // Now and then long enough for others to overtake.
        let longest_ms = if self.random.u8(0..20) == 0 { 800 } else { 30 };
        let pause = Duration::from_millis(self.random.u64(0..longest_ms));
        self.life.errands.spawn(async move {
            sleep(pause).await;
            Done::Fetch(offset)
        });
    }

    fn place(&self, leader_epoch: Option<i32>) -> Place {
        let mut leader = self.life.target.unwrap_or(Leader { node: None, leader_epoch: -1, topic_id: 0 });
        leader.leader_epoch = leader_epoch.unwrap_or(leader.leader_epoch);
        let partition = partition_number(self.partition);
        Place { cluster: self.cluster.clone(), topic: self.field.topic.clone(), partition, leader }
    }

    async fn carry_out(&mut self, command: Command) {
        let errands = &mut self.life.errands;
        match command {
            Command::Ask { attempt, question, leader_epoch, producer_id } => {
                let place = self.place(Some(leader_epoch));
                let producer_id = producer_id.unwrap_or(self.field.config.producer_id);
                self.life.errands.spawn(ask(place, attempt, question, producer_id));
            }
            Command::ReadTail { attempt, from, to, producer_id } => {
                let place = self.place(None);
                self.life
                    .errands
                    .spawn(async move { Done::Tail(attempt, place.tail(from, to, producer_id).await) });
            }
            Command::FindCopy { attempt, to, .. } => {
                let (place, field, partition) = (self.place(None), Arc::clone(&self.field), self.partition);
                self.life.errands.spawn(async move {
                    let found = place.copy(to, |number| field.upstreams[partition].after(number)).await;
                    Done::Copy(attempt, found)
                });
            }
            Command::AskSourceSpan { attempt } => {
                errands.spawn(async move { Done::SourceSpan(attempt) });
            }
            Command::ReadState { attempt } => {
                let (field, partition) = (Arc::clone(&self.field), self.partition);
                let pause = Duration::from_millis(self.random.u64(0..10));
                errands.spawn(async move {
                    sleep(pause).await;
                    Done::StateRead(attempt, field.logs[partition].len())
                });
            }
            Command::TakeProducerId { .. } => self.fault("asks for a new producer id"),
            Command::AskOpenTransaction { .. } => self.fault("asks for a transaction where none is"),
            Command::Store { attempt, entry } => self.store(attempt, entry),
            Command::Produce { ticket, batch, .. } => {
                let place = self.place(None);
                match self.wire.send(&place, batch).await {
                    Ok(sending) => {
                        self.life
                            .errands
                            .spawn(async move { Done::Produced(ticket, sending.answer().await) });
                    }
                    Err(_) => self.life.machine.handle_produced(boot_time(), ticket, ProduceAnswer::Lost),
                }
            }
            Command::RefreshMetadata(Side::Source) => {}
            Command::RefreshMetadata(Side::Target) => {
                let cluster = self.cluster.clone();
                errands.spawn(async move {
                    // A failure shows at the next request.
                    let _ = cluster.refresh_metadata().await;
                    Done::Refreshed
                });
            }
            Command::Emit(event) => self.handle_event(event),
        }
    }

    /// The append goes on when this process has vanished, as a request on the wire does.
    fn store(&mut self, attempt: Option<u64>, entry: PartitionEntry) {
        let (field, partition, life) = (Arc::clone(&self.field), self.partition, &mut self.life);
        let (process, read_to) = (life.process, life.read_to);
        let pauses = [(); 2].map(|()| Duration::from_millis(self.random.u64(0..15)));
        let append = tokio::spawn(async move {
            sleep(pauses[0]).await;
            field.logs[partition].append(process, read_to, entry)
        });
        let field = Arc::clone(&self.field);
        life.errands.spawn(async move {
            let stored = append.await.unwrap_or_else(|panic| {
                field.fault(format!("an append panicked: {panic}"));
                Stored { won: false, read_to: 0 }
            });
            sleep(pauses[1]).await;
            Done::Stored(attempt, stored)
        });
    }

    fn handle_done(&mut self, done: Done) {
        let now = boot_time();
        match done {
            Done::Offset(attempt, question, Ok(offset)) => {
                self.life.machine.handle_offset(now, attempt, question, offset);
            }
            Done::LastBatch(attempt, Ok(last)) => self.life.machine.handle_last_batch(now, attempt, last),
            Done::Tail(attempt, Ok(tail)) => self.life.machine.handle_tail(now, attempt, tail),
            Done::Copy(attempt, Ok(search)) => self.life.machine.handle_copy(now, attempt, search),
            Done::Offset(attempt, _, Err(why))
            | Done::LastBatch(attempt, Err(why))
            | Done::Tail(attempt, Err(why))
            | Done::Copy(attempt, Err(why)) => {
                self.life.machine.handle_failure(now, attempt, Side::Target, "a request", &why);
            }
            Done::SourceSpan(attempt) => {
                let span = SourceSpan { log_start: 0, high_watermark: i64::MAX };
                self.life.machine.handle_source_span(now, attempt, span);
            }
            Done::StateRead(attempt, to) => {
                self.read_state(Some(to));
                self.life.machine.handle_state_read(now, attempt);
            }
            Done::Stored(attempt, stored) => {
                self.read_state(Some(stored.read_to));
                if let Some(attempt) = attempt {
                    self.life.machine.handle_stored(now, attempt, stored.won);
                }
            }
            Done::Produced(ticket, answer) => {
                self.wire.answered();
                self.life.machine.handle_produced(now, ticket, answer);
            }
            Done::Fetch(offset) => {
                let upstream = &self.field.upstreams[self.partition];
                let records = upstream.fetch(offset, self.left_out, &mut self.random);
                self.life.machine.handle_fetched(now, Fetched { offset, result: Ok(records) });
            }
            Done::Refreshed => {}
        }
        if let Some(mark) = self.life.machine.record().mark() {
            self.field.note_acknowledged(self.partition, mark.upstream);
        }
    }

    fn handle_event(&self, event: Event) {
        match event {
            Event::Held(reason) => self.fault(&format!("is held: {reason}")),
            Event::ForeignRecords { expected, found } => {
                self.fault(&format!("found foreign records: {expected} expected, {found} found"));
            }
            Event::Copied { records, .. } => {
                self.field.counts.copied[self.instance].fetch_add(records, Ordering::Relaxed);
            }
            Event::Resumed { .. } => {
                self.field.counts.line_ups.fetch_add(1, Ordering::Relaxed);
            }
            Event::InDoubt { .. } => {
                self.field.counts.doubts.fetch_add(1, Ordering::Relaxed);
            }
            // Leaders are killed here, and it is waited for new ones.
            Event::Waits { .. } | Event::GoesOn => {}
            // The enum may grow: whatever comes has to be thought about here.
            other => self.fault(&format!("tells {other:?}")),
        }
    }

    fn fault(&self, what: &str) {
        self.field.fault(format!("instance {}, partition {} {what}", self.instance, self.partition));
    }
}

impl Life {
    fn begin(field: &Field, partition: usize, random: &mut fastrand::Rng) -> Self {
        static PROCESSES: AtomicU64 = AtomicU64::new(0);
        let read_to = field.logs[partition].len();
        let mut record = PartitionRecord::default();
        for entry in field.logs[partition].read(0, read_to) {
            record.apply(&entry);
        }
        Self {
            process: PROCESSES.fetch_add(1, Ordering::Relaxed),
            machine: PartitionMachine::new(field.config.clone(), record),
            read_to,
            target: None,
            errands: JoinSet::new(),
            ends: boot_time() + Duration::from_millis(random.u64(0..LIFE_MAX_MS)),
            stopping: false,
        }
    }
}

async fn ask(place: Place, attempt: u64, question: Question, producer_id: i64) -> Done {
    match question {
        Question::LogEnd => Done::Offset(attempt, question, place.log_end().await),
        Question::HighWatermark => Done::Offset(attempt, question, place.high_watermark().await),
        Question::LastBatch => Done::LastBatch(attempt, place.last_batch(producer_id).await),
    }
}

fn partition_number(partition: usize) -> i32 {
    i32::try_from(partition).expect("a few partitions")
}
