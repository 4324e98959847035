//! In which form a configuration was written: advice must be something that can be written there.

/// A properties file, or a connector's JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    #[default]
    Properties,
    Connector,
}

impl Form {
    /// A setting as it is written.
    pub(super) fn setting(self, key: &str, value: &str) -> String {
        match self {
            Self::Properties => format!("`{key} = {value}`"),
            Self::Connector => format!("`\"{key}\": \"{value}\"`"),
        }
    }

    /// What to know about backslashes: both forms take one for themselves.
    pub(super) fn of_backslashes(self) -> &'static str {
        match self {
            Self::Properties => "in a properties file a backslash is written twice",
            Self::Connector => "in JSON a backslash is written twice",
        }
    }

    /// A key with its line where lines tell something: a body has only one, most of the time.
    pub(super) fn place(self, key: &str, line: usize) -> String {
        match self {
            Self::Properties => format!("`{key}` (line {line})"),
            Self::Connector => format!("`{key}`"),
        }
    }

    /// Keys in a list, each with its [place](Form::place).
    pub(super) fn listed<'e>(self, entries: impl Iterator<Item = (&'e str, usize)>) -> String {
        entries.map(|(key, line)| self.place(key, line)).collect::<Vec<_>>().join(", ")
    }
}
