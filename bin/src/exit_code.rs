//! With which code the process ends, for scripts and service managers.

/// What happened, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// Done, or stopped by a signal and drained.
    Done,
    /// All else is level, but something is held or was lost.
    Held,
    /// The configuration or the command line cannot be used (`EX_USAGE`).
    BadConfig,
    /// A cluster was not reached in time (`EX_UNAVAILABLE`).
    Unreachable,
    /// A bug of twinlog (`EX_SOFTWARE`).
    Bug,
    /// A second signal came while draining: ended at once.
    SecondSignal,
}

impl ExitCode {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Done => 0,
            Self::Held => 1,
            Self::BadConfig => 64,
            Self::Unreachable => 69,
            Self::Bug => 70,
            Self::SecondSignal => 130,
        }
    }
}
