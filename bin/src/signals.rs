//! SIGTERM and SIGINT: the first asks to drain, the second to end at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, caught from the moment this is made.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// # Errors
    /// When the system refuses a handler.
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one and gives its name. Safe to drop: a signal that came meanwhile is kept.
    pub(crate) async fn next(&mut self) -> &'static str {
        // A closed stream never yields again; then only the other signal counts.
        tokio::select! {
            Some(()) = self.terminate.recv() => "SIGTERM",
            Some(()) = self.interrupt.recv() => "SIGINT",
            else => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};

    use super::*;

    fn send(name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    #[tokio::test]
    async fn signals_are_caught_by_name_and_one_that_nobody_awaits_is_kept() {
        let mut signals = Signals::install().unwrap();
        send("TERM");
        assert_eq!(signals.next().await, "SIGTERM");
        send("INT");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        assert_eq!(signals.next().await, "SIGINT");
    }
}
