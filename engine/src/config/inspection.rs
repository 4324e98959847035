//! Reads a configuration to its end, whether it can be used or not: what each flow would get, and all that is to be said.

use super::connector;
use super::error::{ConfigErrors, Fault, Origin};
use super::flow::{self, FlowConfig};
use super::flows::{self, FlowNames};
use super::notices::{self, Notices, Warning};
use super::options::{self, FlowOptions};
use super::patterns::Compiled;
use super::properties::Properties;
use super::providers::{self, Surroundings};
use super::resolve::Resolver;
use super::{addresses, loops, refused, values};

/// Everything that a configuration says, and everything that is to be said of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The names in `clusters`.
    pub(super) clusters: Vec<String>,
    pub(super) flows: Vec<FlowConfig>,
    options: Vec<FlowOptions>,
    faults: Vec<Fault>,
    pub(super) warnings: Vec<Warning>,
    pub(super) not_needed: Vec<Origin>,
    pub(super) later: Vec<Origin>,
    pub(super) not_yet: Vec<&'static str>,
}

impl Inspection {
    /// Reads a file: a connector's JSON when it begins with a brace, else properties.
    #[must_use]
    pub fn of_file(bytes: &[u8], surroundings: Surroundings<'_>) -> Self {
        if is_connector(bytes) {
            Self::of_connector(bytes, surroundings)
        } else {
            Self::of_properties(bytes, surroundings)
        }
    }

    /// Reads a properties file as MM2's dedicated mode does.
    #[must_use]
    pub fn of_properties(bytes: &[u8], surroundings: Surroundings<'_>) -> Self {
        let typed = match Properties::parse(bytes) {
            Ok(typed) => typed,
            Err(faults) => return Self { faults, ..Self::default() },
        };
        let (properties, spoilt) = providers::resolve(&typed, surroundings);
        let flows::Enabled { clusters, flows, faults, warnings } = flows::enabled(&properties);
        let mut inspection = Self { faults, warnings, ..Self::default() };
        let compiled = Compiled::default();
        for names in &flows {
            inspection.read_flow(Resolver::new(&properties, names, &compiled));
        }
        inspection.faults.extend(refused::heartbeats_of_pairs(&properties, &clusters));
        let (loops, allowed_loops) = loops::check(&properties, &inspection.flows);
        inspection.faults.extend(loops);
        inspection.warnings.extend(allowed_loops);
        inspection.warnings.extend(addresses::check(&properties, &inspection.flows));
        inspection.faults.extend(values::check_process(&properties));
        inspection.warnings.extend(properties.utf8_note());
        inspection.warnings.extend(values::odd(&properties).map(|(entry, text)| Warning::of(entry, text)));
        let notices = notices::of_properties(&properties, &clusters, &flows);
        Self { clusters, ..inspection }.finish(notices, spoilt)
    }

    /// Reads a connector's JSON, bare or with name and config, as Connect does.
    #[must_use]
    pub fn of_connector(bytes: &[u8], surroundings: Surroundings<'_>) -> Self {
        let typed = match connector::parse(bytes) {
            Ok(typed) => typed,
            Err(faults) => return Self { faults, ..Self::default() },
        };
        let (settings, spoilt) = providers::resolve(&typed, surroundings);
        let mut inspection = Self { faults: connector::check(&settings), ..Self::default() };
        let names = FlowNames::of_connector(&settings);
        inspection.read_flow(Resolver::of_connector(&settings, &names, &Compiled::default()));
        inspection.warnings.extend(values::blanks_before_classes(&settings));
        inspection.warnings.extend(addresses::check(&settings, &inspection.flows));
        inspection.finish(notices::of_connector(&settings), spoilt)
    }

    fn read_flow(&mut self, mut resolver: Resolver<'_>) {
        self.flows.extend(flow::read(&mut resolver));
        refused::check(&mut resolver);
        values::check_types(&mut resolver);
        for words in refused::not_yet(&resolver) {
            if !self.not_yet.contains(&words) {
                self.not_yet.push(words);
            }
        }
        self.options.push(options::of_flow(&resolver));
        let (faults, warnings) = resolver.finish();
        self.faults.extend(faults);
        self.warnings.extend(warnings);
    }

    fn finish(mut self, notices: Notices, spoilt: providers::Spoilt) -> Self {
        (self.not_needed, self.later) = (notices.not_needed, notices.later);
        self.warnings.extend(notices.warnings);
        self.warnings.sort_by_key(|warning| warning.origin.as_ref().map(|origin| origin.line));
        // A key at top level is read by every flow, and told once.
        self.warnings.dedup();
        self.faults = spoilt.followed_by(self.faults);
        self
    }

    /// What is wrong, or nothing.
    ///
    /// # Errors
    /// All faults at once, in the order of the file.
    pub fn result(&self) -> Result<(), ConfigErrors> {
        match self.faults.as_slice() {
            [] => Ok(()),
            faults => Err(ConfigErrors::new(faults.to_vec()).with_warnings(self.warnings.clone())),
        }
    }

    /// What each enabled flow gets.
    #[must_use]
    pub fn options(&self) -> &[FlowOptions] {
        &self.options
    }

    /// What reads oddly, though it can be used.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Keys that tune parts of MM2 that twinlog does not have.
    #[must_use]
    pub fn not_needed(&self) -> &[Origin] {
        &self.not_needed
    }

    /// Keys that tune parts which this version does not have yet.
    #[must_use]
    pub fn later(&self) -> &[Origin] {
        &self.later
    }

    /// What MM2 would do by default and this version does not, in words.
    #[must_use]
    pub fn not_yet(&self) -> &[&'static str] {
        &self.not_yet
    }
}

/// Whether these are a connector's JSON.
pub(super) fn is_connector(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}
