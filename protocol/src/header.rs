//! The headers in front of every request and response.
//!
//! Request headers: version 1 in front of inflexible requests, 2 (with tagged fields) in front of flexible ones.
//! Response headers: version 0 and 1 likewise, but ApiVersions always has 0, so that a client can read an answer from
//! a broker that does not know the version it asked in.
//!
//! # References
//! `RequestHeader.json`, `ResponseHeader.json` and `ApiVersionsResponse.json` of Kafka; KIP-482, KIP-511.

use bytes::BufMut;

use crate::cursor::Cursor;
use crate::message::skip_tagged_fields;
use crate::versions::Api;
use crate::{DecodeError, EncodeError};

/// What goes in front of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// The kind of request.
    pub api: Api,
    /// The version of its body.
    pub version: i16,
    /// The number that its answer carries.
    pub correlation_id: i32,
    /// The name that brokers show in logs and quotas, at most 32,767 bytes.
    pub client_id: &'a str,
}

impl RequestHeader<'_> {
    /// Bytes that the header takes.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        2 + 2 + 4 + 2 + self.client_id.len() + usize::from(self.api.is_flexible(self.version))
    }

    /// Appends the header to `out`.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`] for the client id; nothing was written then.
    pub fn encode(&self, out: &mut impl BufMut) -> Result<(), EncodeError> {
        let length = self.client_id.len();
        let length = i16::try_from(length).map_err(|_| EncodeError::TooLong {
            field: "client id",
            length,
            limit: i16::MAX.unsigned_abs().into(),
        })?;
        out.put_i16(self.api.key());
        out.put_i16(self.version);
        out.put_i32(self.correlation_id);
        // Not compact even in version 2, so that a broker can read the client id of any request.
        out.put_i16(length);
        out.put_slice(self.client_id.as_bytes());
        if self.api.is_flexible(self.version) {
            out.put_u8(0);
        }
        Ok(())
    }
}

/// Reads the header of an answer to a request of `api` in `version`, and checks that it answers `correlation_id`.
///
/// # Errors
/// [`DecodeError::Correlation`] when it answers another request: the connection is beyond saving then.
/// [`DecodeError`] of the field where the bytes are cut or a length lies.
pub fn decode_response_header(
    cursor: &mut Cursor,
    api: Api,
    version: i16,
    correlation_id: i32,
) -> Result<(), DecodeError> {
    let found = cursor.i32("correlation id")?;
    if found != correlation_id {
        return Err(DecodeError::Correlation { expected: correlation_id, found });
    }
    if api.is_flexible(version) && api != Api::ApiVersions {
        skip_tagged_fields(cursor, "response header tags")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn encoded(api: Api, version: i16) -> Vec<u8> {
        let header = RequestHeader { api, version, correlation_id: 0x0102_0304, client_id: "tw" };
        let mut out = Vec::new();
        header.encode(&mut out).unwrap();
        assert_eq!(out.len(), header.encoded_bytes());
        out
    }

    #[test]
    fn flexible_requests_end_in_an_empty_tag_section() {
        assert_eq!(encoded(Api::Metadata, 8), [0, 3, 0, 8, 1, 2, 3, 4, 0, 2, b't', b'w']);
        assert_eq!(encoded(Api::Metadata, 9), [0, 3, 0, 9, 1, 2, 3, 4, 0, 2, b't', b'w', 0]);
        assert_eq!(encoded(Api::ApiVersions, 3), [0, 18, 0, 3, 1, 2, 3, 4, 0, 2, b't', b'w', 0]);
    }

    #[test]
    fn client_id_that_does_not_fit_is_refused() {
        let long = "x".repeat(32_768);
        let header = RequestHeader { api: Api::Fetch, version: 12, correlation_id: 1, client_id: &long };
        let mut out = Vec::new();
        assert_eq!(
            header.encode(&mut out),
            Err(EncodeError::TooLong { field: "client id", length: 32_768, limit: 32_767 })
        );
        assert!(out.is_empty());
    }

    fn decoded(bytes: &'static [u8], api: Api, version: i16) -> Result<usize, DecodeError> {
        let mut cursor = Cursor::new(Bytes::from_static(bytes));
        decode_response_header(&mut cursor, api, version, 7)?;
        Ok(cursor.left())
    }

    #[test]
    fn tags_of_a_flexible_response_header_are_skipped() {
        assert_eq!(decoded(&[0, 0, 0, 7, 0, 9], Api::Metadata, 9), Ok(1));
        assert_eq!(decoded(&[0, 0, 0, 7, 1, 5, 2, 1, 1, 9], Api::Metadata, 9), Ok(1));
        assert_eq!(decoded(&[0, 0, 0, 7, 9], Api::Metadata, 8), Ok(1));
        assert_eq!(decoded(&[0, 0, 0, 7, 9], Api::ApiVersions, 4), Ok(1));
    }

    #[test]
    fn an_answer_to_another_request_is_an_error() {
        assert_eq!(
            decoded(&[0, 0, 0, 8, 0], Api::Metadata, 9),
            Err(DecodeError::Correlation { expected: 7, found: 8 })
        );
    }

    #[test]
    fn a_cut_or_lying_header_is_an_error() {
        assert!(matches!(decoded(&[0, 0, 0], Api::Metadata, 9), Err(DecodeError::Truncated { .. })));
        assert!(matches!(decoded(&[0, 0, 0, 7], Api::Metadata, 9), Err(DecodeError::Truncated { .. })));
        assert!(matches!(
            decoded(&[0, 0, 0, 7, 1, 0, 0x7f, 1], Api::Metadata, 9),
            Err(DecodeError::LyingLength { .. })
        ));
    }
}
