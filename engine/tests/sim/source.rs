//! The source: partitions whose records are their own upstream offsets, in batches of any size, with holes between them and
//! inside.
//!
//! Records that compaction removed are optional from then on: whoever read them before may still copy them. Where committed
//! records are read, those of transactions that were aborted are none.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use fastrand::Rng;
use twinlog_engine::machine::partition::SourceSpan;
use twinlog_protocol::batch::{Attributes, BatchHeader, ProducerStamp};
use twinlog_protocol::fetch::AbortedTransaction;
use twinlog_protocol::record::BatchBuilder;

use super::plan::Plan;

/// Attributes of a transaction marker.
const CONTROL: i16 = 0x30;
/// Whose batches are in transactions; nobody in particular writes the others.
const PRODUCERS: [i64; 2] = [100, 101];
const NOBODY: i64 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Control,
    /// The header stays, the records are gone.
    Emptied,
    /// Nothing stays.
    Removed,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    base_offset: i64,
    count: u32,
    kind: Kind,
    /// Records of data that compaction took, a bit for each.
    gone: u16,
    producer_id: i64,
}

/// A transaction that has begun.
#[derive(Debug, Clone, Copy)]
struct Transaction {
    producer_id: i64,
    first_offset: i64,
    end: Option<End>,
}

/// The marker of a transaction.
#[derive(Debug, Clone, Copy)]
struct End {
    offset: i64,
    is_abort: bool,
}

impl Piece {
    fn next_offset(&self) -> i64 {
        self.base_offset + i64::from(self.count)
    }

    /// The records of data that are there.
    fn records(&self) -> impl Iterator<Item = i64> + use<> {
        let Self { base_offset, count, kind, gone, .. } = *self;
        let is_there = move |index: &u32| kind == Kind::Data && gone >> index & 1 == 0;
        (0..count).filter(is_there).map(move |index| base_offset + i64::from(index))
    }

    /// The cleaner takes some of the records, perhaps all.
    fn thin(&mut self, rng: &mut Rng) {
        self.gone |= rng.u16(..);
        if self.records().next().is_none() {
            self.kind = Kind::Emptied;
        }
    }
}

#[derive(Debug)]
pub(crate) struct SourcePartition {
    pub(crate) topic_id: u128,
    pub(crate) log_start: i64,
    /// All log starts so far: where a copy may begin.
    pub(crate) log_starts: Vec<i64>,
    pieces: Vec<Piece>,
    /// Upstream offsets of all records ever, and whether each has to be copied.
    pub(crate) data: Vec<i64>,
    optional: BTreeMap<i64, ()>,
    /// Batches are cut anew for each fetch.
    recut: bool,
    /// Committed records are read, and there are transactions.
    committed: bool,
    /// What expires before it is copied is lost, and has to be told.
    loses: bool,
    transactions: Vec<Transaction>,
    pub(crate) aborted_records: u64,
}

/// Records in a batch of the source, at most, however it is cut.
pub(crate) const SOURCE_BATCH_RECORDS_MAX: u32 = 11;

/// The value of a record: its upstream offset.
pub(crate) fn value_of(offset: i64) -> Bytes {
    Bytes::copy_from_slice(&offset.to_be_bytes())
}

impl SourcePartition {
    pub(crate) fn new(topic_id: u128, first_offset: i64, plan: &Plan) -> Self {
        let first =
            Piece { base_offset: first_offset, count: 0, kind: Kind::Removed, gone: 0, producer_id: NOBODY };
        Self {
            topic_id,
            log_start: first_offset,
            log_starts: vec![first_offset],
            pieces: vec![first],
            data: Vec::new(),
            optional: BTreeMap::new(),
            recut: plan.recut,
            committed: plan.committed,
            loses: plan.goes_on(),
            transactions: Vec::new(),
            aborted_records: 0,
        }
    }

    pub(crate) fn log_end(&self) -> i64 {
        self.pieces.last().map_or(self.log_start, Piece::next_offset)
    }

    pub(crate) fn span(&self) -> SourceSpan {
        SourceSpan { log_start: self.log_start, high_watermark: self.log_end() }
    }

    /// The place in `data` of the first record at or behind an offset.
    pub(crate) fn place_of(&self, offset: i64) -> usize {
        self.data.partition_point(|record| *record < offset)
    }

    pub(crate) fn is_optional(&self, offset: i64) -> bool {
        self.optional.contains_key(&offset)
    }

    /// A producer, or the broker itself, appends.
    pub(crate) fn append(&mut self, rng: &mut Rng, hole_chance: f64) {
        if self.committed && rng.bool() {
            return self.append_to_transaction(rng);
        }
        let base_offset = self.log_end();
        let (kind, count) = if rng.f64() < hole_chance {
            let kind = [Kind::Control, Kind::Emptied, Kind::Removed][rng.usize(..3)];
            (kind, if kind == Kind::Control { 1 } else { rng.u32(1..6) })
        } else {
            (Kind::Data, if rng.bool() { rng.u32(1..4) } else { rng.u32(1..=SOURCE_BATCH_RECORDS_MAX) })
        };
        let mut piece = Piece { base_offset, count, kind, gone: 0, producer_id: NOBODY };
        if kind == Kind::Data && rng.f64() < hole_chance {
            piece.thin(rng);
        }
        self.data.extend(piece.records());
        self.pieces.push(piece);
    }

    /// A producer begins a transaction, goes on with it, or ends it.
    fn append_to_transaction(&mut self, rng: &mut Rng) {
        let producer_id = PRODUCERS[rng.usize(..PRODUCERS.len())];
        let is_open = self.open().any(|transaction| transaction.producer_id == producer_id);
        if is_open && rng.u8(..3) == 0 {
            return self.end_transaction(rng, producer_id);
        }
        let base_offset = self.log_end();
        if !is_open {
            self.transactions.push(Transaction { producer_id, first_offset: base_offset, end: None });
        }
        let count = rng.u32(1..=SOURCE_BATCH_RECORDS_MAX);
        let piece = Piece { base_offset, count, kind: Kind::Data, gone: 0, producer_id };
        self.data.extend(piece.records());
        self.pieces.push(piece);
    }

    fn end_transaction(&mut self, rng: &mut Rng, producer_id: i64) {
        let (base_offset, is_abort) = (self.log_end(), rng.bool());
        let open = self.transactions.iter_mut().rfind(|transaction| transaction.producer_id == producer_id);
        let transaction = open.expect("somebody has begun it");
        transaction.end = Some(End { offset: base_offset, is_abort });
        let first_offset = transaction.first_offset;
        if is_abort {
            let of = |piece: &&Piece| piece.producer_id == producer_id && piece.base_offset >= first_offset;
            let void: Vec<i64> = self.pieces.iter().filter(of).flat_map(Piece::records).collect();
            self.data.retain(|offset| void.binary_search(offset).is_err());
            self.aborted_records += void.len() as u64;
        }
        self.pieces.push(Piece { base_offset, count: 1, kind: Kind::Control, gone: 0, producer_id });
    }

    pub(crate) fn end_transactions(&mut self, rng: &mut Rng) {
        let open: Vec<i64> = self.open().map(|transaction| transaction.producer_id).collect();
        open.into_iter().for_each(|producer_id| self.end_transaction(rng, producer_id));
    }

    fn open(&self) -> impl Iterator<Item = &Transaction> {
        self.transactions.iter().filter(|transaction| transaction.end.is_none())
    }

    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.open().map(|transaction| transaction.first_offset).min().unwrap_or(self.log_end())
    }

    /// Whether the batch belongs to a transaction that was aborted.
    fn is_void(&self, piece: &Piece) -> bool {
        self.aborted().any(|(transaction, end)| {
            transaction.producer_id == piece.producer_id
                && (transaction.first_offset..end).contains(&piece.base_offset)
        })
    }

    /// Transactions that were aborted, and the offsets of their markers.
    fn aborted(&self) -> impl Iterator<Item = (&Transaction, i64)> {
        let end_of =
            |transaction: &Transaction| transaction.end.filter(|end| end.is_abort).map(|end| end.offset);
        self.transactions.iter().filter_map(move |transaction| Some((transaction, end_of(transaction)?)))
    }

    /// Retention: the log starts later, inside a batch as likely as not.
    pub(crate) fn move_start(&mut self, log_start: i64) {
        self.log_start = self.log_start.max(log_start);
        self.log_starts.push(self.log_start);
        let is_excused = |piece: &&Piece| !self.loses && piece.next_offset() <= self.log_start;
        for piece in self.pieces.iter().filter(is_excused) {
            (piece.base_offset..piece.next_offset()).for_each(|offset| {
                self.optional.insert(offset, ());
            });
        }
        let kept_from = self.log_start;
        let last = self.pieces.len() - 1;
        let mut place = 0;
        self.pieces.retain(|piece| {
            place += 1;
            piece.next_offset() > kept_from || place > last
        });
    }

    /// The cleaner goes through some batches below `to`: it thins them, or takes them whole.
    pub(crate) fn compact(&mut self, rng: &mut Rng, to: i64) {
        let void: Vec<bool> = self.pieces.iter().map(|piece| self.is_void(piece)).collect();
        for (piece, is_void) in self.pieces.iter_mut().zip(void) {
            if piece.kind != Kind::Data || piece.next_offset() > to || rng.bool() {
                continue;
            }
            let before = *piece;
            if is_void {
                piece.kind = if rng.bool() { Kind::Emptied } else { Kind::Removed };
                continue;
            }
            match rng.u8(..3) {
                0 => piece.kind = Kind::Emptied,
                1 => piece.kind = Kind::Removed,
                _ => piece.thin(rng),
            }
            let kept: Vec<i64> = piece.records().collect();
            let gone = before.records().filter(|offset| !kept.contains(offset));
            self.optional.extend(gone.map(|offset| (offset, ())));
        }
    }

    /// Some batches from the one that holds `offset` on, with the aborted transactions that reach into them; none when the
    /// offset is out of range.
    pub(crate) fn fetch(&self, rng: &mut Rng, offset: i64) -> Option<(Bytes, Vec<AbortedTransaction>)> {
        if offset < self.log_start || offset > self.log_end() {
            return None;
        }
        let first = self.pieces.partition_point(|piece| piece.next_offset() <= offset);
        let wanted = rng.usize(1..10);
        let mut out = BytesMut::new();
        let end = if self.committed { self.last_stable_offset() } else { self.log_end() };
        let there = self.pieces[first..].iter().take_while(|piece| piece.next_offset() <= end);
        let there = there.filter(|piece| piece.kind != Kind::Removed);
        let mut pieces = there.take(wanted).peekable();
        while let Some(piece) = pieces.next() {
            if piece.kind == Kind::Data && self.recut {
                let mut end = piece.next_offset();
                let mut records: Vec<i64> = piece.records().collect();
                while let Some(next) = pieces.next_if(|next| {
                    next.kind == Kind::Data
                        && next.base_offset == end
                        && next.producer_id == piece.producer_id
                }) {
                    end = next.next_offset();
                    records.extend(next.records());
                }
                let back = rng.i64(..3).min(offset - piece.base_offset).max(0);
                let start = piece.base_offset.max(offset.min(end) - back);
                put_cut(&mut out, rng, start..end, &records, piece.producer_id);
            } else {
                put_piece(&mut out, *piece);
            }
        }
        let mut aborted: Vec<_> = if self.committed {
            let reaches = self.aborted().filter(|(_, end)| *end >= offset);
            reaches.map(|(transaction, _)| transaction.listed()).collect()
        } else {
            Vec::new()
        };
        rng.shuffle(&mut aborted);
        Some((out.freeze(), aborted))
    }
}

impl Transaction {
    fn listed(&self) -> AbortedTransaction {
        AbortedTransaction { producer_id: self.producer_id, first_offset: self.first_offset }
    }
}

fn put_cut(out: &mut BytesMut, rng: &mut Rng, mut offsets: Range<i64>, records: &[i64], producer_id: i64) {
    while !offsets.is_empty() {
        let end = (offsets.start + rng.i64(1..9)).min(offsets.end);
        put_batch(out, offsets.start..end, records.iter().copied(), 0, producer_id);
        offsets.start = end;
    }
}

fn put_piece(out: &mut BytesMut, piece: Piece) {
    let offsets = piece.base_offset..piece.next_offset();
    match piece.kind {
        Kind::Removed => {}
        Kind::Data | Kind::Emptied => put_batch(out, offsets, piece.records(), 0, piece.producer_id),
        Kind::Control => put_batch(out, offsets, [], CONTROL, piece.producer_id),
    }
}

/// A batch that spans `offsets`, with those of `records` that lie there.
fn put_batch(
    out: &mut BytesMut,
    offsets: Range<i64>,
    records: impl IntoIterator<Item = i64>,
    attributes: i16,
    producer_id: i64,
) {
    let count = |from: i64, to: i64| u32::try_from(to - from).expect("batches are small");
    let stamp = ProducerStamp { producer_id, producer_epoch: 0, base_sequence: -1 };
    let mut builder = BatchBuilder::new().base_offset(offsets.start).producer(stamp);
    if producer_id != NOBODY {
        builder = builder.transactional();
    }
    let mut next = offsets.start;
    for offset in records.into_iter().filter(|offset| offsets.contains(offset)) {
        builder.leave_gap(count(next, offset)).expect("batches are small");
        builder.push(offset, None, Some(value_of(offset)), Vec::new()).expect("eight bytes fit a record");
        next = offset + 1;
    }
    let last_offset_delta = count(offsets.start, offsets.end).cast_signed() - 1;
    builder.leave_gap(count(next, offsets.end)).expect("batches are small");
    if let Ok(batch) = builder.build() {
        return out.put_slice(batch.bytes());
    }
    let header = BatchHeader {
        base_offset: offsets.start,
        batch_length: 49,
        partition_leader_epoch: 0,
        magic: 2,
        crc: 0,
        attributes: Attributes(attributes),
        last_offset_delta,
        base_timestamp: 0,
        max_timestamp: 0,
        producer_id,
        producer_epoch: 0,
        base_sequence: -1,
        record_count: 0,
    };
    out.put_slice(&header.encode());
}
