//! Log lines: to standard error, above the live lines of a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use indicatif::MultiProgress;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::args::LogFormat;

/// What is logged when nobody says.
pub(crate) const DEFAULT_LEVEL: &str = "info";

/// Sets up logging for the whole process. `lines` are the live lines to keep clear of.
///
/// # Errors
/// One sentence when `level` is neither a level nor a list of directives.
pub(crate) fn init(format: LogFormat, level: &str, lines: &MultiProgress) -> Result<(), String> {
    // Set but empty means not set, as for most variables.
    let level = if level.trim().is_empty() { DEFAULT_LEVEL } else { level };
    let filter = EnvFilter::try_new(level).map_err(|error| format!("`{level}` is no log level: {error}"))?;
    let colors =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(colors)
        .with_writer(AboveLiveLines(lines.clone()));
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().flatten_event(true).with_target(true).init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(bug = true, "twinlog has a bug, please report it: {panic}");
    }));
    Ok(())
}

/// Writes to standard error. A full disk or a reader that is gone must not end a copy, and there is nobody else to tell.
pub(crate) fn tell(text: &[u8]) {
    let _ = io::stderr().lock().write_all(text);
}

/// Writes a result to standard output, in parts. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// What else kept it from being written, such as a full disk.
pub(crate) fn print(write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    unless_closed(write(&mut out).and_then(|()| out.flush()))
}

/// What became of a result on standard output, where a reader that is gone is no error.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}

/// Takes live lines away while a log line is written, so that neither cuts the other.
struct AboveLiveLines(MultiProgress);

impl<'w> MakeWriter<'w> for AboveLiveLines {
    type Writer = &'w Self;

    fn make_writer(&'w self) -> Self::Writer {
        self
    }
}

impl io::Write for &AboveLiveLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| tell(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
