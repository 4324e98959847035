//! What an operator should see of a configuration that can be used.

use std::fmt;

use super::error::{Fault, Origin, and_all, and_more};
use super::properties::Entry;
use super::secret;

/// Something in the configuration that an operator should see, though it can be used.
///
/// `Display` gives one line for people, in which long texts are cut; [`Warning::message`] the whole sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Warning {
    /// The key it is about; none when it is about several.
    pub origin: Option<Origin>,
    /// What was written, the whole of it, as far as it may be shown; none also where a secret may hide in it.
    pub value: Option<String>,
    /// Further keys of which the same is to be said.
    pub others: Box<[Origin]>,
    /// What is odd, in words that do not repeat the key.
    pub text: String,
    /// What may be meant, or what to do; empty where there is nothing to do.
    pub remedy: String,
}

impl Warning {
    pub(super) fn of(entry: &Entry, text: impl AsRef<str>) -> Self {
        Self {
            origin: Some(entry.origin()),
            value: Some(entry.shown()),
            text: entry.without_secrets(text.as_ref()),
            ..Self::default()
        }
    }

    /// A fault that keeps nothing from being used, and why.
    pub(super) fn of_harmless(fault: Fault, why: &str) -> Self {
        let Fault { key, line, value, others, reason, remedy } = fault;
        // A key that is missing has no place.
        let missing = key.as_ref().filter(|_| line.is_none()).map(|key| format!("`{key}`: "));
        let text = format!("{}{reason} ({why})", missing.unwrap_or_default());
        let origin = key.zip(line).map(|(key, line)| Origin { key, line });
        Self { origin, value: value.map(String::from), others, text, remedy }
    }

    pub(super) fn others(mut self, others: &[&Entry]) -> Self {
        self.others = others.iter().map(|entry| entry.origin()).collect();
        self
    }

    /// Adds what comes of it, if anything does.
    pub(super) fn and_so(mut self, consequence: &str) -> Self {
        self.text.push_str(consequence);
        self
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// The whole sentence, with nothing cut and nothing escaped: not for a terminal.
    #[must_use]
    pub fn message(&self) -> String {
        let origin = self.origin.as_ref().map(|Origin { key, line }| format!("line {line}: `{key}`: "));
        format!("{}{}", origin.unwrap_or_default(), self.sentence(&and_all(&self.others)))
    }

    /// The sentence without its place; `others` tells the further keys.
    pub(super) fn sentence(&self, others: &str) -> String {
        let colon = if self.remedy.is_empty() { "" } else { ": " };
        format!("{}{others}{colon}{}", self.text, self.remedy)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        f.write_str(&secret::sentence_in_a_line(&self.sentence(&and_more(&self.others))))
    }
}
