//! How a loss and a leader epoch of the source are laid out in an entry: what entries of version 2 have and those of version
//! 1 had not.
//!
//! ```text
//! loss   kind i8 (0: nothing was lost), then if it is not 0
//!        from i64, to i64 (-1: nobody knows), records i64
//! epoch  leader epoch i32 (-1: not known), then if it is not -1
//!        start i64, next i64
//! ```

use bytes::{BufMut, BytesMut};
use twinlog_protocol::DecodeError;
use twinlog_protocol::cursor::Cursor;

use super::record::offset;
use crate::machine::loss::{Loss, LossCause};
use crate::machine::partition_record::SourceEpoch;

const NOTHING: i8 = 0;
const UNKNOWN: i64 = -1;
const CAUSES: [(i8, LossCause); 5] = [
    (1, LossCause::Expired),
    (2, LossCause::SourceRecreated),
    (3, LossCause::SourceCutBack),
    (4, LossCause::TargetLost),
    (5, LossCause::Refused),
];

pub(super) fn put_loss(buffer: &mut BytesMut, loss: Option<&Loss>) {
    let Some(loss) = loss else { return buffer.put_i8(NOTHING) };
    let known = CAUSES.iter().find(|(_, cause)| *cause == loss.cause);
    let (id, _) = known.expect("each cause has its number");
    buffer.put_i8(*id);
    buffer.put_i64(loss.from);
    buffer.put_i64(loss.to.unwrap_or(UNKNOWN));
    buffer.put_u64(loss.records);
}

pub(super) fn loss(cursor: &mut Cursor) -> Result<Option<Loss>, DecodeError> {
    let at = cursor.at();
    let id = cursor.i8("loss")?;
    if id == NOTHING {
        return Ok(None);
    }
    let Some((_, cause)) = CAUSES.iter().find(|(known, _)| *known == id) else {
        let reason = "a kind of loss that this version does not know; a newer twinlog wrote it";
        return Err(DecodeError::BadValue { field: "loss", at, value: id.into(), reason });
    };
    let from = offset(cursor, "start of the loss")?;
    let to = cursor.offset("end of the loss")?;
    let records = offset(cursor, "records of the loss")?.unsigned_abs();
    Ok(Some(Loss { cause: *cause, from, to: (to != UNKNOWN).then_some(to), records }))
}

pub(super) fn put_epoch(buffer: &mut BytesMut, epoch: Option<&SourceEpoch>) {
    let Some(epoch) = epoch else { return buffer.put_i32(-1) };
    buffer.put_i32(epoch.leader_epoch);
    buffer.put_i64(epoch.start);
    buffer.put_i64(epoch.next);
}

pub(super) fn epoch(cursor: &mut Cursor) -> Result<Option<SourceEpoch>, DecodeError> {
    let leader_epoch = cursor.i32("leader epoch")?;
    if leader_epoch < 0 {
        return Ok(None);
    }
    let start = offset(cursor, "start of the leader epoch")?;
    let next = offset(cursor, "end of the leader epoch")?;
    Ok(Some(SourceEpoch { leader_epoch, start, next }))
}
