//! Records with rising upstream offsets on their way into one dense batch, and which offsets were left out between them.

use super::builder::BatchBuilder;
use crate::EncodeError;
use crate::batch::BatchView;

/// From its record `index` on, the offsets of a batch follow on from `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetRun {
    /// Place of the record in the batch, from 0.
    pub index: u32,
    /// Its upstream offset.
    pub offset: i64,
}

/// A batch written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reencoded {
    /// The dense batch, without a producer; its base offset is the upstream offset of its first record.
    pub view: BatchView,
    /// Where upstream offsets do not follow on; empty where all do.
    pub gaps: Vec<OffsetRun>,
}

impl Reencoded {
    /// The upstream offset of the record at `index`.
    #[must_use]
    pub fn offset_at(&self, index: u32) -> i64 {
        let first = OffsetRun { index: 0, offset: self.view.header().base_offset };
        let behind = self.gaps.partition_point(|gap| gap.index <= index);
        let run = behind.checked_sub(1).map_or(first, |last| self.gaps[last]);
        run.offset.saturating_add(i64::from(index.saturating_sub(run.index)))
    }
}

/// A dense batch in the making.
#[derive(Debug)]
pub(super) struct Dense {
    new: BatchBuilder,
    records: u32,
    /// Offset behind the last record.
    next_offset: i64,
    gaps: Vec<OffsetRun>,
}

impl Dense {
    /// Begins with the record at `offset`: `new` is empty.
    pub(super) fn begin(new: BatchBuilder, offset: i64) -> Self {
        Self { new: new.base_offset(offset), records: 0, next_offset: offset, gaps: Vec::new() }
    }

    /// Where the record at `offset` is to be pushed: that record, once.
    pub(super) fn place(&mut self, offset: i64) -> &mut BatchBuilder {
        if offset != self.next_offset {
            self.gaps.push(OffsetRun { index: self.records, offset });
        }
        self.records += 1;
        self.next_offset = offset.saturating_add(1);
        &mut self.new
    }

    /// Bytes of its records, not packed.
    pub(super) fn payload_bytes(&self) -> usize {
        self.new.held().payload_bytes
    }

    pub(super) fn finish(self) -> Result<Reencoded, EncodeError> {
        Ok(Reencoded { view: self.new.build()?, gaps: self.gaps })
    }
}
