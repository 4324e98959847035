//! With how many replicas a topic is created on a cluster of a given size.
//!
//! A factor that nobody wrote is cut to the number of brokers, with a warning; one that somebody wrote and the
//! cluster cannot give is an error that names the key. MM2's own defaults (2 and 3) fail on small clusters.

/// Lets the broker choose by its `default.replication.factor`.
pub const BROKER_DEFAULT: i16 = -1;

/// A replication factor from the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationFactor {
    /// Number of replicas, from 1, or -1 for the broker's own default.
    pub value: i16,
    /// The key that sets it: as typed when it was written, else its plain name.
    pub key: String,
    /// Line of the file when somebody wrote it; none for a default.
    pub line: Option<usize>,
}

/// The factor to create a topic with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactorDecision {
    /// For the CreateTopics request.
    pub replicas: i16,
    /// To be shown once, when a default was cut.
    pub warning: Option<String>,
}

/// A factor that somebody wrote and the cluster cannot give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: `{key} = {value}`: the cluster has {brokers}; write a factor that it can give, or remove the key"
)]
pub struct FactorError {
    /// The key as typed.
    pub key: String,
    /// Its line.
    pub line: usize,
    /// The factor asked for.
    pub value: i16,
    /// The brokers there are, in words.
    pub brokers: String,
}

impl ReplicationFactor {
    /// The factor for a cluster of `brokers` brokers that answer.
    ///
    /// # Errors
    /// When the factor was written and is larger than `brokers`.
    pub fn decide(&self, brokers: usize) -> Result<FactorDecision, FactorError> {
        let brokers = i16::try_from(brokers.max(1)).unwrap_or(i16::MAX);
        if self.value == BROKER_DEFAULT || self.value <= brokers {
            return Ok(FactorDecision { replicas: self.value, warning: None });
        }
        let there_are = if brokers == 1 { "1 broker".to_owned() } else { format!("{brokers} brokers") };
        match self.line {
            Some(line) => {
                Err(FactorError { key: self.key.clone(), line, value: self.value, brokers: there_are })
            }
            None => Ok(FactorDecision {
                replicas: brokers,
                warning: Some(format!(
                    "`{}`: the default replication factor {} is cut to {brokers}, the cluster has {there_are}",
                    self.key, self.value
                )),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(value: i16, line: Option<usize>) -> ReplicationFactor {
        ReplicationFactor { value, key: "replication.factor".into(), line }
    }

    #[test]
    fn what_the_cluster_can_give_is_taken() {
        for line in [None, Some(4)] {
            let decision = factor(3, line).decide(3).unwrap();
            assert_eq!(decision, FactorDecision { replicas: 3, warning: None });
        }
    }

    #[test]
    fn a_default_is_cut_with_a_warning() {
        let decision = factor(2, None).decide(1).unwrap();
        assert_eq!(decision.replicas, 1);
        let warning = decision.warning.unwrap();
        assert_eq!(
            warning,
            "`replication.factor`: the default replication factor 2 is cut to 1, the cluster has 1 broker"
        );
    }

    #[test]
    fn a_written_factor_is_never_cut() {
        let error = factor(3, Some(4)).decide(2).unwrap_err();
        assert_eq!((error.value, error.line), (3, 4));
        let text = error.to_string();
        assert!(text.starts_with("line 4: `replication.factor = 3`: the cluster has 2 brokers"), "{text}");
    }

    #[test]
    fn minus_one_leaves_it_to_the_broker() {
        assert_eq!(factor(-1, Some(1)).decide(1).unwrap().replicas, BROKER_DEFAULT);
    }

    #[test]
    fn a_cluster_that_names_no_broker_counts_as_one() {
        assert_eq!(factor(1, Some(1)).decide(0).unwrap().replicas, 1);
    }
}
