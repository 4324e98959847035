//! Which names of a configuration stand for which cluster. A cluster under two names is how loops hide from names: only
//! cluster ids show it, once the clusters are reached.
//!
//! - N1: in one process a cluster has one name, unless a flow that allows loops brings the second one.
//! - N2: no record is appended to its own topic: a flow between two names of one cluster has to prefix its topics.
//! - N3: of two flows that keep topic names none goes the other's way back, whatever their clusters are called.

use std::collections::BTreeMap;

/// One side of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedCluster<'a> {
    /// Its name in the configuration.
    pub name: &'a str,
    /// The cluster id that its brokers tell.
    pub id: &'a str,
}

/// What is looked at before a flow begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowEnds<'a> {
    /// The flow's name.
    pub flow: &'a str,
    /// Where records come from.
    pub source: NamedCluster<'a>,
    /// Where they go.
    pub target: NamedCluster<'a>,
    /// Whether topics are called the same on both sides.
    pub keeps_names: bool,
    /// `loops.allow`.
    pub loops_allowed: bool,
}

/// The clusters of the flows that have begun.
#[derive(Debug, Default)]
pub struct ClusterNames {
    /// By cluster id, in the order in which they came.
    names: BTreeMap<String, Vec<String>>,
    /// Flows that keep topic names: source id, target id, name.
    keeping: Vec<(String, String, String)>,
}

impl ClusterNames {
    /// Takes in a flow that is about to begin. Gives warnings, each once for all flows.
    ///
    /// # Errors
    /// Why it must not begin, as a sentence. Then it leaves no trace.
    pub fn add(&mut self, ends: &FlowEnds<'_>) -> Result<Vec<String>, String> {
        let FlowEnds { flow, source, target, keeps_names, loops_allowed } = *ends;
        let is_one_cluster = source.id == target.id;
        let odd: Vec<String> = if is_one_cluster {
            let (source, target, id) = (source.name, target.name, source.id);
            vec![format!(
                "`{source}` and `{target}` are the same cluster (id {id}); check both bootstrap.servers"
            )]
        } else {
            [source, target].into_iter().filter_map(|cluster| self.second_name(cluster)).collect()
        };
        if let (Some(first), true) = (odd.first(), is_one_cluster && keeps_names) {
            return Err(format!(
                "flow {flow}: {first}: records would be appended to their own topics without end"
            ));
        }
        if let Some(first) = odd.first().filter(|_| !loops_allowed) {
            return Err(format!("flow {flow}: {first}; `loops.allow = true` insists"));
        }
        let way_back = self.keeping.iter().find(|(from, to, _)| from == target.id && to == source.id);
        if let Some((.., other)) = way_back.filter(|_| keeps_names) {
            return Err(format!(
                "flow {flow}: flow {other} runs the other way between the same clusters (ids {} and {}), and both keep \
                 the names of topics, so each record would be copied back and forth without end; let topics be prefixed",
                source.id, target.id
            ));
        }
        for NamedCluster { name, id } in [source, target] {
            let names = self.names.entry(id.to_owned()).or_default();
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        if keeps_names {
            self.keeping.push((source.id.to_owned(), target.id.to_owned(), flow.to_owned()));
        }
        Ok(odd
            .into_iter()
            .map(|odd| format!("{odd}; run all the same, because `loops.allow` is set"))
            .collect())
    }

    /// What is odd about a name that is new for its cluster.
    fn second_name(&self, NamedCluster { name, id }: NamedCluster<'_>) -> Option<String> {
        let names = self.names.get(id)?;
        let other = names.first().filter(|_| !names.iter().any(|known| known == name))?;
        Some(format!(
            "`{name}` is the same cluster as `{other}` (id {id}); give it one name, or check both bootstrap.servers"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow between clusters written as `name=id`.
    fn ends<'a>(flow: &'a str, source: &'a str, target: &'a str) -> FlowEnds<'a> {
        let [source, target] = [source, target].map(|text| {
            let (name, id) = text.split_once('=').unwrap();
            NamedCluster { name, id }
        });
        FlowEnds { flow, source, target, keeps_names: false, loops_allowed: false }
    }

    #[test]
    fn a_cluster_may_be_in_many_flows_under_one_name() {
        let mut names = ClusterNames::default();
        for (flow, source, target) in [("a->b", "a=1", "b=2"), ("b->a", "b=2", "a=1"), ("c->b", "c=3", "b=2")]
        {
            assert_eq!(names.add(&ends(flow, source, target)), Ok(vec![]));
        }
    }

    #[test]
    fn n1_a_second_name_is_refused_or_told_once() {
        let mut names = ClusterNames::default();
        names.add(&ends("a->b", "a=1", "b=2")).unwrap();
        let second = ends("c->d", "c=3", "d=2");
        assert_eq!(
            names.add(&second).unwrap_err(),
            "flow c->d: `d` is the same cluster as `b` (id 2); give it one name, or check both bootstrap.servers; \
             `loops.allow = true` insists"
        );
        // The refused flow has left nothing behind.
        assert_eq!(names.add(&ends("e->a", "e=3", "a=1")), Ok(vec![]));
        let insists = FlowEnds { loops_allowed: true, source: NamedCluster { name: "e", id: "3" }, ..second };
        let warnings = names.add(&insists).unwrap();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("`d` is the same cluster as `b` (id 2)"), "{warnings:?}");
        assert_eq!(names.add(&insists), Ok(vec![]), "told once");
    }

    #[test]
    fn n2_one_cluster_on_both_sides_runs_only_for_who_insists_and_prefixes() {
        let mut names = ClusterNames::default();
        let flow = ends("a->b", "a=1", "b=1");
        let refusal = names.add(&flow).unwrap_err();
        assert!(
            refusal.starts_with("flow a->b: `a` and `b` are the same cluster (id 1); check"),
            "{refusal}"
        );
        let insists = FlowEnds { loops_allowed: true, ..flow };
        let equal_names = FlowEnds { keeps_names: true, ..insists };
        assert!(names.add(&equal_names).unwrap_err().ends_with("to their own topics without end"));
        assert_eq!(names.add(&insists).unwrap().len(), 1);
    }

    #[test]
    fn n3_two_ways_under_equal_names_are_refused_by_id() {
        let mut names = ClusterNames::default();
        let keeps = |flow| FlowEnds { keeps_names: true, loops_allowed: true, ..flow };
        names.add(&keeps(ends("a->b", "a=1", "b=2"))).unwrap();
        let back = keeps(ends("c->d", "c=2", "d=1"));
        let refusal = names.add(&back).unwrap_err();
        assert!(refusal.contains("flow a->b runs the other way between the same clusters (ids 2 and 1)"));
        assert_eq!(names.add(&FlowEnds { keeps_names: false, ..back }).unwrap().len(), 2);
        assert_eq!(names.add(&keeps(ends("b->e", "b=2", "e=3"))), Ok(vec![]), "a chain is no ring");
    }
}
