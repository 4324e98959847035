//! The first exchange on every connection: which versions the broker speaks, and how far away it is.
//!
//! # References
//! KIP-35; KIP-511: a broker that does not know the asked version of ApiVersions says so in version 0.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use twinlog_protocol::{
    message::types::{ApiVersionsRequest, ApiVersionsResponse, StrBytes},
    versions::{Api, Unsupported, Versions, negotiate},
};

use super::{
    connection::Connection,
    error::{CallError, ConnectionError, Fault},
};

const UNSUPPORTED_VERSION: i16 = 35;

/// What a connection learnt before it was used.
#[derive(Debug)]
pub(super) struct Introduction {
    pub(super) versions: BrokerVersions,
    /// What the exchange took. A broker answers it at once, so it is the round trip, whatever keeps other requests waiting.
    pub(super) round_trip: Duration,
}

/// The versions that a broker speaks, of the APIs that we use.
#[derive(Debug, Clone)]
pub(super) struct BrokerVersions(HashMap<Api, Versions>);

impl BrokerVersions {
    fn new(response: &ApiVersionsResponse) -> Self {
        let listed = response.api_keys.iter().filter_map(|listed| {
            let api = Api::ALL.into_iter().find(|api| api.key() == listed.api_key)?;
            Some((api, Versions { min: listed.min_version, max: listed.max_version }))
        });
        BrokerVersions(listed.collect())
    }

    pub(super) fn version(&self, api: Api) -> Result<i16, Unsupported> {
        let theirs = self.0.get(&api).ok_or_else(|| Unsupported::unlisted(api))?;
        negotiate(api, theirs.min, theirs.max)
    }
}

/// Asks in our newest version, and in the oldest if the broker does not know that one.
pub(super) async fn introduce(connection: &Connection) -> Result<Introduction, ConnectionError> {
    let Versions { min, max } = Api::ApiVersions.versions();
    let begun = Instant::now();
    let mut answer = ask(connection, max).await?;
    let round_trip = begun.elapsed();
    if answer.error_code == UNSUPPORTED_VERSION {
        answer = ask(connection, min).await?;
    }
    match answer.error_code {
        0 => Ok(Introduction { versions: BrokerVersions::new(&answer), round_trip }),
        code => Err(connection.end(Fault::Handshake { code })),
    }
}

async fn ask(connection: &Connection, version: i16) -> Result<ApiVersionsResponse, ConnectionError> {
    let mut request = ApiVersionsRequest::default();
    if version >= 3 {
        request.client_software_name = StrBytes::from_static_str("twinlog");
        request.client_software_version = StrBytes::from_static_str(env!("CARGO_PKG_VERSION"));
    }
    match connection.call_in(&request, version, connection.options().handshake_timeout).await {
        Ok(answer) => Ok(answer),
        Err(CallError::Connection(error)) => Err(error),
        Err(error) => unreachable!("a fixed request in a version of ours cannot be refused here: {error}"),
    }
}
