//! From a properties file of MM2 to what a flow does: what was typed, and what it means.
//!
//! Two rules hold for everything that is not built yet. What MM2 does by default and twinlog does not is named in
//! one line ([`MirrorConfig::not_yet`]) and the flow runs. What a key asks for expressly is refused with a sentence
//! that names the key: nobody is to believe that something happens which does not.
//!
//! The road of a key: [`properties`] reads the text, `keys` knows every name, `resolve` finds the value that counts
//! for a flow (`a->b.key` before `key`; `a.key` for what belongs to a cluster), `refused` turns away what is not
//! built, `flow` and `cluster` give types. All faults are gathered before anything is returned.

mod cluster;
mod error;
mod flow;
mod flows;
mod keys;
mod loops;
mod notices;
mod properties;
mod providers;
mod refused;
mod resolve;
mod secret;
mod settings;
mod values;

pub use cluster::ClusterConfig;
pub use error::{ConfigErrors, Fault, Origin};
pub use flow::{FlowConfig, OffsetsMode};
pub use notices::Warning;
pub use properties::{Entry, Properties};
pub use providers::Surroundings;
pub use secret::is_secret_key;

/// A whole configuration: what `twinlog run` is given.
#[derive(Clone, Debug, Default)]
pub struct MirrorConfig {
    flows: Vec<FlowConfig>,
    warnings: Vec<Warning>,
    not_needed: Vec<Origin>,
    later: Vec<Origin>,
    not_yet: Vec<&'static str>,
}

impl MirrorConfig {
    /// Reads a properties file as MM2 would (`connect-mirror-maker.sh`).
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
        Self::from_properties_in(bytes, Surroundings::process())
    }

    /// The same, with config providers looking elsewhere.
    ///
    /// # Errors
    /// As [`MirrorConfig::from_properties`].
    pub fn from_properties_in(bytes: &[u8], surroundings: Surroundings<'_>) -> Result<Self, ConfigErrors> {
        let typed = Properties::parse(bytes).map_err(ConfigErrors::new)?;
        let (properties, spoilt) = providers::resolve(&typed, surroundings);
        let flows::Enabled { clusters, flows: enabled, mut faults } = flows::enabled(&properties);
        let mut config = Self::default();
        for names in &enabled {
            let mut resolver = resolve::Resolver::new(&properties, names);
            config.flows.extend(flow::read(&mut resolver));
            refused::check(&mut resolver);
            values::check_types(&mut resolver);
            for words in refused::not_yet(&resolver) {
                if !config.not_yet.contains(&words) {
                    config.not_yet.push(words);
                }
            }
            let (of_flow, warnings) = resolver.finish();
            faults.extend(of_flow);
            config.warnings.extend(warnings);
        }
        faults.extend(refused::heartbeats_of_pairs(&properties, &clusters));
        faults.extend(loops::check(&properties, &config.flows));
        let notices = notices::gather(&properties, &clusters);
        (config.not_needed, config.later) = (notices.not_needed, notices.later);
        config.warnings.extend(notices.warnings);
        config.warnings.extend(values::odd(&properties).map(|(entry, text)| Warning::of(entry, text)));
        config.warnings.sort_by_key(|warning| warning.origin.as_ref().map(|origin| origin.line));
        // A key at top level is read by every flow, and told once.
        config.warnings.dedup();
        let faults = spoilt.followed_by(faults);
        if faults.is_empty() {
            Ok(config)
        } else {
            Err(ConfigErrors::new(faults).with_warnings(config.warnings))
        }
    }

    /// The enabled flows, at least one.
    pub fn flows(&self) -> &[FlowConfig] {
        &self.flows
    }

    /// What reads oddly in the file but does not keep it from being used. To be logged at start, each once.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Keys that tune parts of MM2 that twinlog does not have (producers, worker topics, converters).
    pub fn not_needed(&self) -> &[Origin] {
        &self.not_needed
    }

    /// Keys that tune parts which this version does not have yet: without effect until then.
    pub fn later(&self) -> &[Origin] {
        &self.later
    }

    /// What MM2 would do for this file by default and this version does not, in words; one log line at start.
    pub fn not_yet(&self) -> &[&'static str] {
        &self.not_yet
    }
}

#[cfg(test)]
mod tests;
