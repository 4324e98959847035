//! Reads a configuration to its end, whether it can be used or not: what each flow would get, and all that is to be said.

use std::collections::{HashMap, HashSet};

use super::connector;
use super::effect::Effective;
use super::error::{ConfigErrors, Fault, Origin};
use super::flow::{self, FlowConfig};
use super::flows::{self, FlowNames};
use super::form::Form;
use super::loops::Link;
use super::notices::{self, Notices};
use super::once::Once;
use super::only_into::{LEFT_OUT, Targets};
use super::options::{self, FlowOptions, Shown};
use super::patterns::Compiled;
use super::properties::Properties;
use super::providers::{self, Spoilt, Surroundings};
use super::recognition::{self, is_connector};
use super::resolve::Resolver;
use super::warning::Warning;
use super::{addresses, loops, refused, sizes, values};

/// Everything that a configuration says, and everything that is to be said of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The names in `clusters`.
    pub(super) clusters: Vec<String>,
    pub(super) flows: Vec<FlowConfig>,
    options: Vec<FlowOptions>,
    /// Of the whole process; none where it cannot be used.
    pub(super) memory_bytes_max: Option<u64>,
    pub(super) faults: Vec<Fault>,
    pub(super) warnings: Vec<Warning>,
    pub(super) not_needed: Vec<Warning>,
    pub(super) later: Vec<Warning>,
    pub(super) not_yet: Vec<&'static str>,
}

impl Inspection {
    /// Reads a file: a connector's JSON when it begins as JSON does, else properties.
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
        Self::of_flows_into(&Targets::default(), bytes, surroundings)
    }

    /// The same for some of the flows.
    pub(super) fn of_flows_into(targets: &Targets<'_>, bytes: &[u8], surroundings: Surroundings<'_>) -> Self {
        if let Some(fault) = recognition::not_text(bytes) {
            return Self::unusable(vec![fault]);
        }
        let typed = match Properties::parse(bytes) {
            Ok(typed) => typed,
            Err(faults) => return Self::unusable(faults),
        };
        if let Some(fault) = recognition::of_another_program(&typed) {
            return Self::unusable(vec![fault]);
        }
        let (properties, spoilt) = providers::resolve(&typed, surroundings);
        let flows::Enabled { clusters, flows, faults, of_left_out, warnings } =
            flows::enabled(&properties, targets);
        let compiled = Compiled::default();
        let mut reading = Reading::of(Effective::new(&clusters, targets));
        let mut elsewhere = Reading::of(Effective::new(&clusters, targets));
        reading.faults.extend(faults);
        reading.faults.extend(targets.check(&clusters, &flows));
        reading.warnings.extend(warnings);
        elsewhere.faults.extend(of_left_out);
        for names in &flows {
            let reading = if targets.has(&names.target) { &mut reading } else { &mut elsewhere };
            reading.read_flow(Resolver::new(&properties, names, &compiled));
        }
        for (fault, target) in refused::heartbeats_of_pairs(&properties, &clusters) {
            let reading = if targets.has(target) { &mut reading } else { &mut elsewhere };
            reading.faults.push(fault);
        }
        let (others, other_links) = reading.leave_out(elsewhere);
        let (loops, allowed_loops) = loops::check(&properties, &reading.links, &other_links);
        reading.faults.extend(loops);
        reading.warnings.extend(allowed_loops);
        let all = reading.inspection.flows.iter().chain(&others);
        reading.warnings.extend(addresses::check(&properties, all));
        reading.faults.extend(values::check_process(&properties));
        match sizes::memory(&properties) {
            Ok(bytes) => reading.inspection.memory_bytes_max = Some(bytes),
            Err(fault) => reading.faults.extend([fault]),
        }
        reading.warnings.extend(properties.utf8_note());
        reading.odd.extend(values::odd(&properties));
        reading.backslashes.extend(values::lost_backslashes(&properties, &clusters));
        let notices = notices::of_properties(&properties, &clusters, &flows);
        let nothing_runs = reading.inspection.options.is_empty();
        let inspection = reading.finish(notices, &spoilt, nothing_runs);
        Self { clusters, ..inspection }
    }

    /// Reads a connector's JSON, bare or with name and config, as Connect does.
    #[must_use]
    pub fn of_connector(bytes: &[u8], surroundings: Surroundings<'_>) -> Self {
        if let Some(fault) = recognition::not_text(bytes) {
            return Self::unusable(vec![fault]);
        }
        let typed = match connector::parse(bytes) {
            Ok(typed) => typed,
            Err(faults) => return Self::unusable(faults),
        };
        let (settings, spoilt) = providers::resolve(&typed, surroundings);
        let targets = Targets::default();
        let mut reading = Reading::of(Effective::new(&[], &targets));
        reading.faults.extend(connector::check(&settings));
        let names = FlowNames::of_connector(&settings);
        let compiled = Compiled::default();
        reading.read_flow(Resolver::of_connector(&settings, &names, &compiled));
        reading.warnings.extend(values::blanks_before_classes(&settings));
        reading.warnings.extend(addresses::check(&settings, reading.inspection.flows.iter()));
        reading.odd.extend(values::odd(&settings));
        reading.finish(notices::of_connector(&settings), &spoilt, false)
    }

    fn unusable(faults: Vec<Fault>) -> Self {
        Self { faults, ..Self::default() }
    }

    pub(super) fn with_fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
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

    /// Keys that tune parts of MM2 that twinlog does not have, each with the reason.
    #[must_use]
    pub fn not_needed(&self) -> &[Warning] {
        &self.not_needed
    }

    /// Keys that tune parts which this version does not have yet, each with the part.
    #[must_use]
    pub fn later(&self) -> &[Warning] {
        &self.later
    }

    /// What MM2 would do by default and this version does not, in words.
    #[must_use]
    pub fn not_yet(&self) -> &[&'static str] {
        &self.not_yet
    }
}

/// Tells what the form has put into values with the fault that comes of it, if one does (`is_of_value`), and else by itself,
/// unless a warning tells it.
fn tell_causes(
    odd: Vec<Warning>,
    faults: &mut [Fault],
    warnings: &mut Vec<Warning>,
    is_of_value: impl Fn(&Fault) -> bool,
) {
    let mut by_place: HashMap<Origin, &mut Fault> = HashMap::new();
    for fault in faults.iter_mut().filter(|fault| is_of_value(fault)) {
        if let Some((key, line)) = fault.key.clone().zip(fault.line) {
            by_place.entry(Origin { key, line }).or_insert(fault);
        }
    }
    let told: HashSet<_> =
        warnings.iter().map(|warning| (warning.origin.clone(), warning.remedy.clone())).collect();
    for odd in odd {
        match odd.origin.as_ref().and_then(|origin| by_place.get_mut(origin)) {
            Some(fault) => fault.remedy = format!("{}; {}", fault.remedy, odd.sentence("")),
            None if told.contains(&(odd.origin.clone(), odd.remedy.clone())) => {}
            None => warnings.push(odd),
        }
    }
}

/// Backslashes that were lost, but for those of values whose faults speak of backslashes.
fn without_told(backslashes: Vec<Warning>, faults: &[Fault]) -> impl Iterator<Item = Warning> {
    let speaking = faults.iter().filter(|fault| fault.remedy.contains(Form::Properties.of_backslashes()));
    let told: HashSet<_> = speaking.map(|fault| (fault.key.clone(), fault.line)).collect();
    backslashes.into_iter().filter(move |warning| {
        let origin = warning.origin.as_ref();
        let place = (origin.map(|origin| origin.key.clone()), origin.map(|origin| origin.line));
        !told.contains(&place)
    })
}

/// An inspection under way.
struct Reading<'c, 'p> {
    inspection: Inspection,
    effective: Effective<'c>,
    shown: Shown<'p>,
    links: Vec<Link>,
    faults: Once<Fault>,
    /// Of flows that are not run.
    of_left_out: Vec<Fault>,
    warnings: Once<Warning>,
    /// What the form has put into values: often the cause of what else is said of them.
    odd: Vec<Warning>,
    backslashes: Vec<Warning>,
}

impl<'c, 'p> Reading<'c, 'p> {
    fn of(effective: Effective<'c>) -> Self {
        Self {
            inspection: Inspection::default(),
            effective,
            shown: Shown::default(),
            links: Vec::new(),
            faults: Once::default(),
            of_left_out: Vec::new(),
            warnings: Once::default(),
            odd: Vec::new(),
            backslashes: Vec::new(),
        }
    }

    fn read_flow(&mut self, mut resolver: Resolver<'p>) {
        let flow = flow::read(&mut resolver);
        self.links.push(Link::of(&resolver, flow.as_ref()));
        self.inspection.flows.extend(flow);
        refused::check(&mut resolver);
        values::check_types(&mut resolver);
        for words in refused::not_yet(&resolver) {
            if !self.inspection.not_yet.contains(&words) {
                self.inspection.not_yet.push(words);
            }
        }
        self.inspection.options.push(options::of_flow(&resolver, &mut self.shown));
        self.effective.add(&resolver);
        let (faults, warnings) = resolver.finish();
        self.faults.extend(faults);
        self.warnings.extend(warnings);
    }

    /// Takes over what is said of flows that are not run, and gives these.
    fn leave_out(&mut self, elsewhere: Self) -> (Vec<FlowConfig>, Vec<Link>) {
        self.of_left_out = elsewhere.faults.into_items();
        self.warnings.extend(elsewhere.warnings.into_items());
        (elsewhere.inspection.flows, elsewhere.links)
    }

    /// `nothing_runs`: then any key may have an effect once the rest is mended, as it may where a key that decides what runs
    /// could not be resolved.
    fn finish(mut self, notices: Notices, spoilt: &Spoilt, nothing_runs: bool) -> Inspection {
        let is_unknown = nothing_runs || self.effective.decides(spoilt.keys());
        let (faults, harmless) = spoilt.judge(|key| is_unknown || self.effective.has(key));
        self.warnings.extend(harmless);
        self.warnings.extend(notices.warnings);
        let mut told = Once::default();
        told.extend(faults);
        told.extend(self.faults.into_items().into_iter().filter(|fault| !spoilt.hides(fault)));
        let mut faults = told.into_items();
        let known: HashSet<&Fault> = faults.iter().collect();
        let of_left_out = self.of_left_out.into_iter();
        let of_left_out = of_left_out.filter(|fault| !spoilt.hides(fault) && !known.contains(fault));
        self.warnings.extend(of_left_out.map(|fault| Warning::of_harmless(fault, LEFT_OUT)));
        let mut warnings = self.warnings.into_items();
        warnings.extend(without_told(self.backslashes, &faults));
        tell_causes(self.odd, &mut faults, &mut warnings, |fault| !spoilt.hides(fault));
        warnings.sort_by_key(|warning| warning.origin.as_ref().map(|origin| origin.line));
        let (not_needed, later) = (notices.not_needed, notices.later);
        Inspection { faults, warnings, not_needed, later, ..self.inspection }
    }
}
