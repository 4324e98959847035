//! From a properties file of MM2 to what a flow does: what was typed, and what it means.
//!
//! Two rules hold for everything that is not built yet. What MM2 does by default and twinlog does not is named in
//! one line ([`MirrorConfig::not_yet`]) and the flow runs. What a key asks for expressly is refused with a sentence
//! that names the key: nobody is to believe that something happens which does not.
//!
//! The road of a key: `properties` or `connector` reads the text, `providers` resolves references, `keys` knows every
//! name, `settings` merges what one flow and its clients get, `resolve` reads values as types, `refused` turns away what
//! is not built, `flow` and `cluster` give types. `inspection` gathers all that is to be said before anything is returned.
//!
//! What is said: `error` and `warning` are its parts, `form` and `pattern_advice` fit them to the file or the body, `once` says
//! nothing twice. It comes from `recognition` (a file of another kind), `values` (what cannot be meant), `patterns`, `left_out`
//! (topics that are named and never copied), `loops`, `addresses` (one cluster under two names), and from `notices`, which
//! looks at every key: `other_side` (written for the wrong cluster), `read_elsewhere` (read at another place), `arrows` and
//! `unknown` (read by nobody). `effect` knows which keys count, so that others cannot refuse a file.

mod addresses;
mod arrows;
mod client_ids;
mod cluster;
mod clusters;
mod compression;
mod connector;
mod documentation;
mod effect;
mod error;
mod flow;
mod flows;
mod form;
pub mod fuzzing;
mod inspection;
mod isolation_level;
mod keys;
mod left_out;
mod loops;
mod losses;
mod notices;
mod once;
mod only_into;
mod options;
mod other_side;
mod pattern_advice;
mod patterns;
mod properties;
mod providers;
mod read_elsewhere;
mod recognition;
mod refused;
mod resolve;
mod secret;
mod settings;
mod sizes;
mod start_position;
mod switches;
mod unknown;
mod values;
mod warning;

pub use client_ids::ClientIds;
pub use cluster::ClusterConfig;
pub use documentation::key_tables;
pub use error::{ConfigErrors, Fault, Origin};
pub use flow::{FlowConfig, OffsetsMode};
pub use inspection::Inspection;
pub use options::{ClientOptions, EffectiveOption, FlowOptions, TakenAs};
pub use properties::{Entry, Properties};
pub use providers::Surroundings;
pub use recognition::is_connector;
pub use secret::{Value, in_a_line, is_secret_key, is_unprintable, printable};
pub use start_position::StartPosition;
pub use warning::Warning;

/// A whole configuration: what `twinlog run` is given.
#[derive(Clone, Debug, Default)]
pub struct MirrorConfig {
    inspection: Inspection,
}

impl MirrorConfig {
    /// Reads a properties file as MM2 would (`connect-mirror-maker.sh`). Config providers look into the file system and
    /// the environment of this process.
    ///
    /// ```
    /// use twinlog_engine::config::MirrorConfig;
    ///
    /// let config = MirrorConfig::from_properties(
    ///     b"clusters = west, east
    ///       west.bootstrap.servers = west-1:9092
    ///       east.bootstrap.servers = east-1:9092
    ///       west->east.enabled = true
    ///       west->east.topics = orders, pay.*",
    /// )?;
    /// let flow = &config.flows()[0];
    /// assert_eq!(flow.name, "west->east");
    /// assert_eq!(flow.selection.remote_topic("orders"), "west.orders");
    /// # Ok::<(), twinlog_engine::config::ConfigErrors>(())
    /// ```
    ///
    /// # Errors
    /// All faults at once, in the order of the file.
    pub fn from_properties(bytes: &[u8]) -> Result<Self, ConfigErrors> {
        let inspection = Inspection::of_properties(bytes, Surroundings::process());
        inspection.result()?;
        Ok(Self { inspection })
    }

    /// The enabled flows, at least one.
    pub fn flows(&self) -> &[FlowConfig] {
        &self.inspection.flows
    }

    /// Bytes of records that all flows together may hold: `memory.max`, 256 MiB if nobody wrote it.
    pub fn memory_bytes_max(&self) -> usize {
        usize::try_from(self.inspection.memory_bytes_max.unwrap_or(sizes::MEMORY_BYTES_MAX))
            .unwrap_or(usize::MAX)
    }

    /// What reads oddly in the file but does not keep it from being used. To be logged at start, each once.
    pub fn warnings(&self) -> &[Warning] {
        &self.inspection.warnings
    }

    /// Keys that tune parts of MM2 that twinlog does not have (producers, worker topics, converters).
    pub fn not_needed(&self) -> &[Warning] {
        &self.inspection.not_needed
    }

    /// Keys that tune parts which this version does not have yet: without effect until then.
    pub fn later(&self) -> &[Warning] {
        &self.inspection.later
    }

    /// What MM2 would do for this file by default and this version does not, in words; one log line at start.
    pub fn not_yet(&self) -> &[&'static str] {
        &self.inspection.not_yet
    }
}

#[cfg(test)]
mod tests;
