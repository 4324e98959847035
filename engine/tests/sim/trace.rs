//! One line per event, kept only when somebody wants to read it, and a digest of all lines.

use std::fmt;

use twinlog_engine::machine::Now;

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn recording() -> Self {
        Self { lines: Some(Vec::new()) }
    }

    pub(crate) fn line(&mut self, now: Now, what: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:9.3} {what}", now.as_secs_f64()));
        }
    }
}
