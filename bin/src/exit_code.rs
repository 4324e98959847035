//! With which code the process ends, for scripts and service managers.

use twinlog_engine::Error;

/// What happened, as one number. Of several, the greatest counts: the one that most needs somebody to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitCode {
    /// Done, or stopped by a signal and drained.
    Done,
    /// Everything else is copied, but something is held or was lost.
    Held,
    /// A cluster was not reached in time (`EX_UNAVAILABLE`).
    Unreachable,
    /// The configuration or the command line cannot be used (`EX_USAGE`).
    BadConfig,
    /// What was asked for could not be written to standard output (`EX_IOERR`).
    NotWritten,
    /// A bug of twinlog (`EX_SOFTWARE`).
    Bug,
    /// A second signal came while draining: ended at once.
    SecondSignal,
}

impl ExitCode {
    /// With which code a flow ends that ended with this error.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Unreachable { .. } => Self::Unreachable,
            Error::Config(_) | Error::Refused(_) | Error::State(_) | Error::UnknownFlow(_) => Self::BadConfig,
            _ => Self::Bug,
        }
    }

    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Done => 0,
            Self::Held => 1,
            Self::BadConfig => 64,
            Self::Unreachable => 69,
            Self::NotWritten => 74,
            Self::Bug => 70,
            Self::SecondSignal => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_flows_the_one_that_fared_worst_counts() {
        let unreachable = Error::Unreachable { unreached: Vec::new() };
        let ended = [Error::Bug(String::new()), Error::State(String::new()), unreachable];
        let codes: Vec<ExitCode> = ended.iter().map(ExitCode::of).collect();
        assert_eq!(codes.iter().map(|code| code.number()).collect::<Vec<_>>(), [70, 64, 69]);
        assert!([codes, vec![ExitCode::Held, ExitCode::Done]].concat().is_sorted_by(|a, b| a > b));
    }
}
