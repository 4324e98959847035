//! `--clusters`: of one file for all places, the flows that the process at one place is to run.
//!
//! MM2 reads the whole file there too, but starts nothing for other targets. So what is wrong only with flows that are left out
//! keeps nothing from running, and is told.

use super::MirrorConfig;
use super::error::{ConfigErrors, Fault};
use super::flows::FlowNames;
use super::inspection::Inspection;
use super::providers::Surroundings;
use super::recognition::is_connector;

/// As the option is named, here and in MM2.
const OPTION: &str = "--clusters";

/// Why a fault of a flow that is left out does not matter.
pub(super) const LEFT_OUT: &str = "which changes nothing here: `--clusters` leaves it out";

impl MirrorConfig {
    /// Reads a properties file for the flows whose target is among `targets`, by the names in `clusters`, as MM2's
    /// `--clusters` does. Faults that only other flows have become warnings.
    ///
    /// # Errors
    /// All other faults at once; names that `clusters` does not list, each one; targets that no enabled flow has.
    pub fn from_properties_into(bytes: &[u8], targets: &[impl AsRef<str>]) -> Result<Self, ConfigErrors> {
        let inspection = Inspection::of_flows_into(&Targets::of(targets), bytes, Surroundings::process());
        inspection.result()?;
        Ok(Self { inspection })
    }
}

impl Inspection {
    /// Reads a file as [`Inspection::of_file`] does, for the flows whose target is among `targets`. A connector's JSON has
    /// one flow, so that naming its target is a fault.
    #[must_use]
    pub fn of_file_into(bytes: &[u8], targets: &[impl AsRef<str>], surroundings: Surroundings<'_>) -> Self {
        if !is_connector(bytes) {
            return Self::of_flows_into(&Targets::of(targets), bytes, surroundings);
        }
        let fault =
            Fault::missing(OPTION, "a connector's JSON holds one flow, so there is none to leave out");
        Self::of_connector(bytes, surroundings).with_fault(fault.remedy("leave the option out"))
    }
}

/// The clusters into which flows are run; none when nobody named any, so that all flows run.
#[derive(Debug, Default)]
pub(super) struct Targets<'t>(Option<Vec<&'t str>>);

impl<'t> Targets<'t> {
    fn of(names: &'t [impl AsRef<str>]) -> Self {
        let names = names.iter().map(|name| name.as_ref().trim());
        Self(Some(names.filter(|name| !name.is_empty()).collect()))
    }

    /// Whether flows into this cluster are run.
    pub(super) fn has(&self, target: &str) -> bool {
        self.0.as_ref().is_none_or(|targets| targets.contains(&target))
    }

    /// What is wrong with the names themselves.
    pub(super) fn check(&self, clusters: &[String], flows: &[FlowNames]) -> Vec<Fault> {
        let Some(targets) = self.0.as_ref().filter(|_| !flows.is_empty()) else { return Vec::new() };
        let unknown = targets.iter().filter(|name| !clusters.iter().any(|known| known == *name));
        let mut faults: Vec<Fault> = unknown
            .map(|name| {
                Fault::missing(OPTION, format!("no cluster is named `{name}`"))
                    .remedy(format!("use the names in `clusters`: {}", clusters.join(", ")))
            })
            .collect();
        if faults.is_empty() && !flows.iter().any(|flow| self.has(&flow.target)) {
            let reason = match targets.join(", ") {
                named if named.is_empty() => "names no cluster".to_owned(),
                named => format!("no enabled flow goes into {named}"),
            };
            let enabled: Vec<String> = flows.iter().map(|flow| format!("`{}`", flow.flow())).collect();
            faults.push(
                Fault::missing(OPTION, reason)
                    .remedy(format!("name a target of an enabled flow: {}", enabled.join(", "))),
            );
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "clusters = a, b, c, d\na->b.enabled = true\na->c.enabled = true\nc->b.enabled = true\n\
        a.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\nc.bootstrap.servers = c:1\n";

    fn only_into(targets: &[&str]) -> Result<Vec<String>, String> {
        let config = MirrorConfig::from_properties_into(FILE.as_bytes(), targets);
        Ok(config
            .map_err(|errors| errors.to_string())?
            .flows()
            .iter()
            .map(|flow| flow.name.clone())
            .collect())
    }

    #[test]
    fn only_flows_into_the_named_clusters_are_left() {
        assert_eq!(only_into(&["b"]).unwrap(), ["a->b", "c->b"]);
        assert_eq!(only_into(&["c", "d"]).unwrap(), ["a->c"]);
        assert_eq!(only_into(&[" c ", "", "b"]).unwrap(), ["a->b", "a->c", "c->b"]);
    }

    #[test]
    fn unknown_names_and_an_empty_rest_are_faults() {
        assert_eq!(
            only_into(&["b", "B", "e"]).unwrap_err(),
            "`--clusters`: no cluster is named `B`; use the names in `clusters`: a, b, c, d\n\
             `--clusters`: no cluster is named `e`; use the names in `clusters`: a, b, c, d"
        );
        assert_eq!(
            only_into(&["a", "d"]).unwrap_err(),
            "`--clusters`: no enabled flow goes into a, d; name a target of an enabled flow: `a->b`, `a->c`, `c->b`"
        );
        assert!(only_into(&["", " "]).unwrap_err().starts_with("`--clusters`: names no cluster; "));
    }

    fn into_b(more: &str) -> Result<Vec<String>, String> {
        match MirrorConfig::from_properties_into(format!("{FILE}{more}").as_bytes(), &["b"]) {
            Ok(config) => Ok(config.warnings().iter().map(ToString::to_string).collect()),
            Err(errors) => Err(errors.to_string()),
        }
    }

    #[test]
    fn what_is_wrong_only_with_flows_that_are_left_out_is_a_warning() {
        for line in [
            "a->c.topics = (",
            "a->c.topics = ${env:TWINLOG_NONE}",
            "a->c.topics = ${file:/nowhere:topics}",
            "a->c.topics = ${TOPICS}",
            "a->c.replication.factor = x",
            "a->c.sync.group.offsets.enabled = true",
            "c.producer.interceptor.classes = com.acme.Mask",
            "c.offset.storage.replication.factor = x",
            "a->d.enabled = yes",
            "a->d.enabled = ${env:TWINLOG_NONE}",
            "b->a.emit.heartbeats.enabled = true",
            "a->d.enabled = true\na->d.target.cluster.security.protocol = SSL\nd.bootstrap.servers=d:1",
            "a->d.enabled = true\nd.security.protocol = SSL\nd.bootstrap.servers=d:1",
        ] {
            let whole = MirrorConfig::from_properties(format!("{FILE}{line}").as_bytes());
            let faults = whole.unwrap_err().faults().len();
            let told = into_b(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let harmless = told.iter().filter(|warning| warning.contains("(which changes nothing"));
            assert_eq!(harmless.count(), faults, "{line}: {told:?}");
        }
        let told = into_b("a->c.replication.factor = x").unwrap();
        let sentence = "line 8: `a->c.replication.factor`: not a replication factor (which changes nothing here: \
                        `--clusters` leaves it out): write a number from 1, or -1 for the broker's own default";
        assert!(told.contains(&sentence.to_owned()), "{told:?}");
        let told = into_b("a->d.enabled = true").unwrap();
        let sentence = "`d.bootstrap.servers`: missing, so cluster `d` cannot be found (which changes nothing here: \
                        `--clusters` leaves it out): write `d.bootstrap.servers = host:port,…`";
        assert!(told.contains(&sentence.to_owned()), "{told:?}");
    }

    #[test]
    fn what_the_flows_that_run_share_with_others_and_what_nobody_can_read_is_a_fault() {
        for line in [
            "topics = (",
            "replication.factor = ${FACTOR}",
            "a.consumer.interceptor.classes = x",
            "c.security.protocol = SSL",
            "a->b.replication.factor = x",
            "d->b.enabled = yes\nd.bootstrap.servers = d:1",
            "enabled = yes\nd.bootstrap.servers = d:1",
            "a->b.emit.heartbeats.enabled = true",
            "memory.max = 1",
            "x = \\u12",
            "config.providers = file",
            "clusters = a",
        ] {
            let told = into_b(line).unwrap_err();
            assert_eq!(told.lines().count(), 1, "{line}: {told}");
        }
    }

    #[test]
    fn a_body_has_no_flows_to_leave_out() {
        let body = "{\"connector.class\": \"MirrorSourceConnector\", \"source.cluster.alias\": \"a\",\n\
                    \"source.cluster.bootstrap.servers\": \"h:1\", \"target.cluster.bootstrap.servers\": \"i:1\"}";
        let told = |targets: &[&str]| {
            let inspection = Inspection::of_file_into(body.as_bytes(), targets, Surroundings::process());
            inspection.result().map_err(|errors| errors.to_string())
        };
        assert!(told(&["b"]).unwrap_err().starts_with("`--clusters`: a connector's JSON holds one flow"));
    }

    #[test]
    fn a_ring_is_refused_where_a_part_of_it_runs() {
        let ring = "b->a.enabled = true\nreplication.policy.class = IdentityReplicationPolicy\n";
        assert!(into_b(ring).unwrap_err().contains("`a->b` and `b->a` keep the names of topics"));
        let elsewhere = "c->a.enabled = true\nreplication.policy.class = IdentityReplicationPolicy\n";
        assert_eq!(into_b(elsewhere), Ok(Vec::new()));
    }
}
