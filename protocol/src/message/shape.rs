//! The fields of a response per version, and the bounded walk over them.
//!
//! The message crate reserves room by the array lengths that the wire names, so nothing reaches it before this walk
//! has found that every length, count and tag lies within the frame. The walk itself allocates nothing.
//!
//! # References
//! Kafka protocol guide, "Protocol Primitive Types"; KIP-482 for compact lengths and tagged fields.

use crate::DecodeError;
use crate::cursor::Cursor;

/// The fields of one kind of response.
#[derive(Debug)]
pub struct Shape {
    /// The response, as errors name it.
    pub(super) what: &'static str,
    /// Its fields, in the order of the wire; tagged ones anywhere.
    pub(super) fields: &'static [Field],
}

/// A field of a response or of a structure in it.
#[derive(Debug)]
pub(super) struct Field {
    /// The path from the response to the field, for errors.
    name: &'static str,
    pub(super) kind: Kind,
    since: i16,
    until: i16,
    nullable_since: i16,
    /// The tag, for a field in the tag section.
    pub(super) tag: Option<u32>,
}

/// What a field looks like on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// So many bytes.
    Fixed(usize),
    /// A length and so many bytes.
    Text,
    /// A count and so many structures of these fields.
    Structs(&'static [Field]),
    /// A count and so many values of this many bytes each.
    Values(usize),
}

const NEVER: i16 = i16::MAX;

const fn field(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, since: 0, until: i16::MAX, nullable_since: NEVER, tag: None }
}

/// A boolean or int8.
pub(super) const fn int8(name: &'static str) -> Field {
    field(name, Kind::Fixed(1))
}

/// An int16.
pub(super) const fn int16(name: &'static str) -> Field {
    field(name, Kind::Fixed(2))
}

/// An int32.
pub(super) const fn int32(name: &'static str) -> Field {
    field(name, Kind::Fixed(4))
}

/// An int64.
pub(super) const fn int64(name: &'static str) -> Field {
    field(name, Kind::Fixed(8))
}

/// A UUID.
pub(super) const fn uuid(name: &'static str) -> Field {
    field(name, Kind::Fixed(16))
}

/// A string.
pub(super) const fn string(name: &'static str) -> Field {
    field(name, Kind::Text)
}

/// An array of structures. Each of them has at least one field in every version, so that none takes no bytes.
pub(super) const fn structs(name: &'static str, fields: &'static [Field]) -> Field {
    field(name, Kind::Structs(fields))
}

/// An array of int32.
pub(super) const fn int32s(name: &'static str) -> Field {
    field(name, Kind::Values(4))
}

impl Field {
    /// Present from this version on.
    pub(super) const fn since(self, version: i16) -> Self {
        Self { since: version, ..self }
    }

    /// Present up to this version.
    pub(super) const fn until(self, version: i16) -> Self {
        Self { until: version, ..self }
    }

    /// May be null from this version on.
    pub(super) const fn nullable_since(self, version: i16) -> Self {
        Self { nullable_since: version, ..self }
    }

    /// May be null.
    pub(super) const fn nullable(self) -> Self {
        self.nullable_since(0)
    }

    /// Stands in the tag section under this tag.
    pub(super) const fn tagged(self, tag: u32) -> Self {
        Self { tag: Some(tag), ..self }
    }

    pub(super) const fn is_in(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }

    pub(super) const fn is_nullable(&self, version: i16) -> bool {
        self.nullable_since <= version
    }
}

/// Tagged fields that nobody knows are kept by the message crate, each in a map of its own structure, at some 400
/// bytes for two on the wire. Newer brokers may send some; more than this, plus one for each 16 bytes of the frame,
/// are an attack.
const UNKNOWN_TAGS_FREE: usize = 1024;
const BYTES_PER_UNKNOWN_TAG: usize = 16;

/// Walks the response from the cursor to the end of its frame.
///
/// # Errors
/// [`DecodeError`] of the first field whose length or count is not true, that is cut, or that is null where null has
/// no meaning; [`DecodeError::TrailingBytes`] when bytes stay after the last field.
pub(super) fn walk(
    shape: &Shape,
    version: i16,
    is_flexible: bool,
    cursor: &mut Cursor,
) -> Result<(), DecodeError> {
    let tags_left = UNKNOWN_TAGS_FREE + cursor.left() / BYTES_PER_UNKNOWN_TAG;
    let mut walk = Walk { cursor, version, is_flexible, tags_left };
    walk.structure(shape.what, shape.fields)?;
    match walk.cursor.left() {
        0 => Ok(()),
        left => Err(DecodeError::TrailingBytes { what: shape.what, left }),
    }
}

/// Skips a tag section without knowing any of its tags.
///
/// # Errors
/// [`DecodeError`] when the section is cut or a size lies.
pub(crate) fn skip_tagged_fields(cursor: &mut Cursor, section: &'static str) -> Result<(), DecodeError> {
    for _ in 0..tag_count(cursor, section)? {
        cursor.uvarint(section)?;
        let size = tag_size(cursor, section)?;
        cursor.skip(section, size)?;
    }
    Ok(())
}

/// A tag takes two bytes at least.
fn tag_count(cursor: &mut Cursor, section: &'static str) -> Result<usize, DecodeError> {
    let count = i64::from(cursor.uvarint(section)?);
    cursor.bounded(section, count, 2)
}

fn tag_size(cursor: &mut Cursor, section: &'static str) -> Result<usize, DecodeError> {
    let size = i64::from(cursor.uvarint(section)?);
    cursor.bounded(section, size, 1)
}

struct Walk<'a> {
    cursor: &'a mut Cursor,
    version: i16,
    is_flexible: bool,
    tags_left: usize,
}

impl Walk<'_> {
    /// The nesting is that of the tables, so the recursion cannot be driven from outside.
    fn structure(&mut self, name: &'static str, fields: &'static [Field]) -> Result<(), DecodeError> {
        for field in fields {
            if field.tag.is_none() && field.is_in(self.version) {
                self.value(field)?;
            }
        }
        if self.is_flexible { self.tags(name, fields) } else { Ok(()) }
    }

    fn value(&mut self, field: &Field) -> Result<(), DecodeError> {
        let name = field.name;
        match field.kind {
            Kind::Fixed(bytes) => self.cursor.skip(name, bytes),
            Kind::Text => {
                let bytes = self.length(field, 1)?.unwrap_or(0);
                self.cursor.skip(name, bytes)
            }
            Kind::Values(bytes) => {
                let count = self.length(field, bytes)?.unwrap_or(0);
                self.cursor.skip(name, count * bytes)
            }
            Kind::Structs(fields) => {
                // Each takes a byte at least, so the count is bounded by what is left.
                let count = self.length(field, 1)?.unwrap_or(0);
                for _ in 0..count {
                    self.structure(name, fields)?;
                }
                Ok(())
            }
        }
    }

    /// The length of a string or the count of an array whose elements take `unit` bytes at least.
    fn length(&mut self, field: &Field, unit: usize) -> Result<Option<usize>, DecodeError> {
        let (name, at) = (field.name, self.cursor.at());
        let length = if self.is_flexible {
            i64::from(self.cursor.uvarint(name)?) - 1
        } else if matches!(field.kind, Kind::Text) {
            i64::from(self.cursor.i16(name)?)
        } else {
            i64::from(self.cursor.i32(name)?)
        };
        if length != -1 {
            return self.cursor.bounded(name, length, unit).map(Some);
        }
        if field.is_nullable(self.version) {
            Ok(None)
        } else {
            Err(DecodeError::BadValue { field: name, at, value: length, reason: "it may not be null" })
        }
    }

    fn tags(&mut self, name: &'static str, fields: &'static [Field]) -> Result<(), DecodeError> {
        for _ in 0..tag_count(self.cursor, name)? {
            let tag = self.cursor.uvarint(name)?;
            let size = tag_size(self.cursor, name)?;
            let known = fields.iter().find(|field| field.tag == Some(tag) && field.is_in(self.version));
            match known {
                Some(field) => self.tagged_value(field, size)?,
                None => self.unknown_tag(name, size)?,
            }
        }
        Ok(())
    }

    /// The message crate reads a tagged field that it knows without looking at its size, so the size must be true.
    fn tagged_value(&mut self, field: &Field, size: usize) -> Result<(), DecodeError> {
        let at = self.cursor.at();
        self.value(field)?;
        if self.cursor.at() - at == size {
            return Ok(());
        }
        let value = i64::try_from(size).unwrap_or(i64::MAX);
        Err(DecodeError::BadValue {
            field: field.name,
            at,
            value,
            reason: "its size as tagged field is not true",
        })
    }

    fn unknown_tag(&mut self, name: &'static str, size: usize) -> Result<(), DecodeError> {
        let at = self.cursor.at();
        self.tags_left = self.tags_left.checked_sub(1).ok_or(DecodeError::BadValue {
            field: name,
            at,
            value: i64::try_from(size).unwrap_or(i64::MAX),
            reason: "one unknown tagged field too many for a frame of this size",
        })?;
        self.cursor.skip(name, size)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const INNER: &[Field] = &[int16("list.number"), string("list.name").nullable_since(1)];
    const SHAPE: Shape = Shape {
        what: "sample",
        fields: &[int32("first").until(1), structs("list", INNER), string("tagged").since(2).tagged(3)],
    };

    fn walked(version: i16, bytes: &[u8]) -> Result<(), DecodeError> {
        walk(&SHAPE, version, version >= 2, &mut Cursor::new(Bytes::copy_from_slice(bytes)))
    }

    #[test]
    fn null_is_taken_only_where_the_version_has_it() {
        let bytes = [0, 0, 0, 9, 0, 0, 0, 1, 0, 5, 0xff, 0xff];
        assert_eq!(walked(1, &bytes), Ok(()));
        let reason = "it may not be null";
        assert_eq!(
            walked(0, &bytes),
            Err(DecodeError::BadValue { field: "list.name", at: 10, value: -1, reason })
        );
        assert_eq!(
            walked(2, &[0, 0]),
            Err(DecodeError::BadValue { field: "list", at: 0, value: -1, reason })
        );
    }

    #[test]
    fn a_count_beyond_the_frame_is_a_lie_before_any_element_is_read() {
        assert_eq!(
            walked(1, &[0, 0, 0, 9, 0x7f, 0xff, 0xff, 0xff, 0, 5]),
            Err(DecodeError::LyingLength { field: "list", at: 8, length: 0x7fff_ffff, left: 2 })
        );
    }

    #[test]
    fn a_known_tag_counts_only_with_its_true_size() {
        assert_eq!(walked(2, &[1, 1, 3, 2, 2, b'x']), Ok(()));
        for size in [1, 3] {
            let bytes = [1, 1, 3, size, 2, b'x', 0, 0];
            assert!(matches!(walked(2, &bytes), Err(DecodeError::BadValue { field: "tagged", .. })));
        }
    }

    #[test]
    fn unknown_tags_are_skipped() {
        assert_eq!(walked(2, &[1, 2, 4, 0, 9, 2, 1, 1]), Ok(()));
        assert!(matches!(walked(2, &[1, 1, 4, 5, 0]), Err(DecodeError::LyingLength { length: 5, .. })));
        assert!(matches!(walked(2, &[1, 0x7f, 4, 0]), Err(DecodeError::LyingLength { length: 127, .. })));
    }

    #[test]
    fn more_unknown_tags_than_any_broker_sends_are_refused() {
        // A frame of nothing but empty tags: each takes two bytes, so most are beyond one in sixteen.
        let mut bytes = vec![1, 0xd0, 0x0f];
        bytes.extend([9, 0].repeat(2000));
        assert!(matches!(walked(2, &bytes), Err(DecodeError::BadValue { field: "sample", at: 2553, .. })));
    }
}
