//! The only door to the message crate: requests out, responses in.
//!
//! The crate trusts the wire: it reserves room by array lengths as a response names them. So a response is first
//! walked by a reader of our own ([`Shape`]) that compares every length with what is left, then decoded, and no byte
//! may stay over. Produce and Fetch have codecs of their own and do not come through here.
//!
//! Strings of a decoded response are slices of its frame: what is kept for long should be copied.

mod shape;
mod tables;
pub mod types;

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::{Decodable, Encodable};

pub use self::shape::Shape;
pub(crate) use self::shape::skip_tagged_fields;
use crate::DecodeError;
pub use crate::EncodeError;
use crate::cursor::Cursor;
use crate::frame::PREFIX_BYTES;
use crate::header::{RequestHeader, decode_response_header};
use crate::versions::{Api, Versions};

mod sealed {
    /// Only kinds with a table here can be asked.
    pub trait Sealed {}
}

/// A request that we send, with what its answer looks like.
pub trait Request: Encodable + sealed::Sealed {
    /// Its API.
    const API: Api;
    /// The fields of its answer.
    const ANSWER: &'static Shape;
    /// Its answer.
    type Response: Decodable;
}

/// Writes a whole frame: length prefix, request header, body.
///
/// # Errors
/// [`EncodeError`] when the version is none of ours or cannot carry a field that is set, or something is too long.
pub fn encode_frame<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: &str,
) -> Result<Bytes, EncodeError> {
    let (api, Versions { min, max }) = (R::API, R::API.versions());
    if !R::API.versions().contains(version) {
        return Err(EncodeError::UnknownVersion { api: api.name(), version, first: min, last: max });
    }
    let header = RequestHeader { api, version, correlation_id, client_id };
    let bytes = header.encoded_bytes() + refused(api, request.compute_size(version))?;
    let length = i32::try_from(bytes).map_err(|_| EncodeError::TooLong {
        field: "request frame",
        length: bytes,
        limit: i32::MAX as usize,
    })?;
    let mut frame = BytesMut::with_capacity(PREFIX_BYTES + bytes);
    frame.put_i32(length);
    header.encode(&mut frame)?;
    refused(api, request.encode(&mut frame, version))?;
    debug_assert_eq!(frame.len(), PREFIX_BYTES + bytes, "the computed size is the written one");
    Ok(frame.freeze())
}

/// Ends the crate's error type here. The crate refuses fields that the version does not have, and strings that are
/// too long.
fn refused<T, E: fmt::Display>(api: Api, result: Result<T, E>) -> Result<T, EncodeError> {
    result.map_err(|error| EncodeError::Invalid { what: api.name(), reason: format!("{error:#}") })
}

/// Reads the answer to a request that was sent in `version` under `correlation_id`. `frame` is all that follows the
/// length prefix.
///
/// An ApiVersions answer that says UNSUPPORTED_VERSION is read as version 0, as brokers send it.
///
/// # Errors
/// [`DecodeError::Correlation`] when it answers another request; [`DecodeError`] of the field that is cut or whose
/// length lies; [`DecodeError::TrailingBytes`]; [`DecodeError::Refused`] for what only the message crate looks at,
/// like strings that are no UTF-8. After any of them the connection cannot be trusted.
pub fn decode_frame<R: Request>(
    frame: Bytes,
    version: i16,
    correlation_id: i32,
) -> Result<R::Response, DecodeError> {
    let what = R::ANSWER.what;
    if !R::API.versions().contains(version) {
        let reason = "not a version that is spoken here";
        return Err(DecodeError::BadValue { field: what, at: 0, value: i64::from(version), reason });
    }
    let mut cursor = Cursor::new(frame);
    decode_response_header(&mut cursor, R::API, version, correlation_id)?;
    let mut body = cursor.rest().clone();
    let version = answered_version(R::API, version, &body);
    shape::walk(R::ANSWER, version, R::API.is_flexible(version), &mut cursor)?;
    let response = R::Response::decode(&mut body, version)
        .map_err(|error| DecodeError::Refused { what, reason: format!("{error:#}") })?;
    match body.len() {
        0 => Ok(response),
        left => Err(DecodeError::TrailingBytes { what, left }),
    }
}

/// A broker that does not know the asked version of ApiVersions answers in version 0 (KIP-511), whose error code
/// comes first as in all versions.
fn answered_version(api: Api, version: i16, body: &[u8]) -> i16 {
    const UNSUPPORTED_VERSION: [u8; 2] = 35i16.to_be_bytes();
    if api == Api::ApiVersions && body.starts_with(&UNSUPPORTED_VERSION) { 0 } else { version }
}

#[cfg(test)]
mod tests;
