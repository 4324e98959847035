//! What is wrong with a configuration: every fault at once, each with key, line, reason and remedy.

use std::fmt;

use super::notices::Warning;
use super::secret;

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The whole key as typed, such as `west->east.topics`.
    pub key: String,
    /// Line of the file, from 1.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}`", self.line, secret::printable(&self.key))
    }
}

/// One thing that keeps a configuration from being used. Its value is already masked where it is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// The whole key as typed; none where a key is missing or a line cannot be read.
    pub key: Option<String>,
    /// Line of the file, from 1; none where a key is missing.
    pub line: Option<usize>,
    /// What was written, as far as it may be shown.
    pub value: Option<String>,
    /// What is wrong, as the end of a sentence that begins with the key.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl Fault {
    /// A fault that belongs to no key (yet).
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }

    /// A fault of a key that was written, with its value.
    pub(crate) fn of(entry: &super::properties::Entry, reason: impl AsRef<str>) -> Self {
        Self::of_reference(entry, entry.without_secrets(reason.as_ref()))
    }

    /// A fault of a key whose reason quotes nothing of its value but a reference to a config provider.
    pub(crate) fn of_reference(entry: &super::properties::Entry, reason: impl Into<String>) -> Self {
        Self {
            key: Some(entry.key.clone()),
            line: Some(entry.line),
            value: Some(entry.shown()),
            reason: reason.into(),
            remedy: String::new(),
        }
    }

    /// A fault of a key that is missing.
    pub(crate) fn missing(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: Some(key.into()), reason: reason.into(), ..Self::default() }
    }

    pub(crate) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// Shows a part of a line that could not be read, unless the line smells of a secret.
    pub(crate) fn value(mut self, line: &str, value: &str) -> Self {
        self.value =
            Some(if secret::is_hidden(line, line) { secret::shown(line, value) } else { value.to_owned() });
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        let about = match (&self.key, &self.value) {
            (Some(key), Some(value)) => format!("`{key} = {value}`: "),
            (Some(key), None) => format!("`{key}`: "),
            (None, Some(value)) => format!("`{value}`: "),
            (None, None) => String::new(),
        };
        let remedy = if self.remedy.is_empty() { String::new() } else { format!("; {}", self.remedy) };
        f.write_str(&secret::printable(&format!("{about}{}{remedy}", self.reason)))
    }
}

/// Every fault of a configuration, in the order of the file; faults without a line come first. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
}

impl ConfigErrors {
    /// # Panics
    /// On an empty list, which would be an error without a reason.
    pub(crate) fn new(mut faults: Vec<Fault>) -> Self {
        assert!(!faults.is_empty(), "a configuration is refused for a reason");
        faults.sort_by_key(|fault| fault.line);
        // A key at top level is read by every flow, and told once.
        let mut told: Vec<Fault> = Vec::new();
        for fault in faults {
            let mut of_its_line = told.iter().rev().take_while(|told| told.line == fault.line);
            if !of_its_line.any(|told| *told == fault) {
                told.push(fault);
            }
        }
        Self { faults: told, warnings: Vec::new() }
    }

    pub(crate) fn with_warnings(mut self, warnings: Vec<Warning>) -> Self {
        self.warnings = warnings;
        self
    }

    /// The faults, at least one.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// What else reads oddly in the file; it may hold the cause of a fault, such as a key that is spelt wrongly.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

#[cfg(test)]
mod tests {
    use super::super::properties::Entry;
    use super::*;

    #[test]
    fn a_fault_reads_as_one_sentence_and_hides_secrets() {
        let entry = Entry { key: "b.sasl.jaas.config".into(), value: "pw".into(), reference: None, line: 7 };
        let fault = Fault::of(&entry, "SASL is not built yet").remedy("remove it");
        assert_eq!(
            fault.to_string(),
            "line 7: `b.sasl.jaas.config = ********`: SASL is not built yet; remove it"
        );
        assert!(!format!("{fault:?} {entry:?}").contains("pw"));
    }

    #[test]
    fn faults_are_listed_in_the_order_of_the_file() {
        let fault = |line, reason: &str| Fault { line, reason: reason.into(), ..Fault::default() };
        let errors = ConfigErrors::new(vec![fault(Some(9), "c"), fault(Some(2), "b"), fault(None, "a")]);
        assert_eq!(errors.to_string(), "a\nline 2: b\nline 9: c");
    }
}
