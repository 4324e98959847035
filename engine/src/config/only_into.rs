//! `--clusters`: of one file for all places, the flows that the process at one place is to run.

use super::MirrorConfig;
use super::error::{ConfigErrors, Fault};

/// As the option is named, here and in MM2.
const OPTION: &str = "--clusters";

impl MirrorConfig {
    /// Keeps the flows whose target is among `targets`, by the names in `clusters`, as MM2's `--clusters` does.
    ///
    /// # Errors
    /// Names that `clusters` does not list, each one; targets that no enabled flow has.
    pub fn only_into(mut self, targets: &[impl AsRef<str>]) -> Result<Self, ConfigErrors> {
        let targets: Vec<&str> =
            targets.iter().map(|name| name.as_ref().trim()).filter(|name| !name.is_empty()).collect();
        let unknown =
            targets.iter().filter(|name| !self.inspection.clusters.iter().any(|known| known == *name));
        let mut faults: Vec<Fault> = unknown
            .map(|name| {
                Fault::missing(OPTION, format!("no cluster is named `{name}`"))
                    .remedy(format!("use the names in `clusters`: {}", self.inspection.clusters.join(", ")))
            })
            .collect();
        let enabled: Vec<String> =
            self.inspection.flows.iter().map(|flow| format!("`{}`", flow.name)).collect();
        self.inspection.flows.retain(|flow| targets.contains(&flow.target.name.as_str()));
        if faults.is_empty() && self.inspection.flows.is_empty() {
            let reason = match targets.join(", ") {
                named if named.is_empty() => "names no cluster".to_owned(),
                named => format!("no enabled flow goes into {named}"),
            };
            faults.push(
                Fault::missing(OPTION, reason)
                    .remedy(format!("name a target of an enabled flow: {}", enabled.join(", "))),
            );
        }
        if faults.is_empty() { Ok(self) } else { Err(ConfigErrors::new(faults)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "clusters = a, b, c, d\na->b.enabled = true\na->c.enabled = true\nc->b.enabled = true\n\
        a.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\nc.bootstrap.servers = c:1\n";

    fn only_into(targets: &[&str]) -> Result<Vec<String>, String> {
        let config = MirrorConfig::from_properties(FILE.as_bytes()).unwrap();
        let left = config.only_into(targets).map_err(|errors| errors.to_string())?;
        Ok(left.flows().iter().map(|flow| flow.name.clone()).collect())
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
}
