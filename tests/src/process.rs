//! Child processes that never outlive the test: each is killed on drop, and by a reaper when the test process dies.

use std::{
    fs::File,
    io::Write,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Mutex, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::{deadline::Deadline, places};

/// A running (or ended) child.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` with both outputs appended to `log`.
    ///
    /// # Errors
    /// When the log cannot be written or the program cannot be started.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.with_context(|| format!("{name}: cannot write its log {}", log.display()))?;
        command.stdout(file.try_clone()?).stderr(file).stdin(Stdio::null());
        Self::spawn(name, command)
    }

    /// Starts `command` with pipes on stdin and stdout and its stderr appended to `log`.
    ///
    /// # Errors
    /// As [`Process::start`].
    pub fn start_piped(
        name: &str,
        mut command: Command,
        log: &Path,
    ) -> Result<(Self, ChildStdin, ChildStdout)> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.with_context(|| format!("{name}: cannot write its log {}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let mut process = Self::spawn(name, command)?;
        let stdin = process.child.stdin.take().context("stdin is piped")?;
        let stdout = process.child.stdout.take().context("stdout is piped")?;
        Ok((process, stdin, stdout))
    }

    fn spawn(name: &str, mut command: Command) -> Result<Self> {
        let reaper = reaper();
        let child = command.process_group(0).spawn();
        let child = child.with_context(|| format!("{name}: cannot start {:?}", command.get_program()))?;
        tell(reaper, &format!("start {}\n", child.id()));
        Ok(Self { name: name.to_owned(), child, ended: None })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the system refuses to tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().with_context(|| format!("{}: wait", self.name))?;
            if self.ended.is_some() {
                tell(reaper(), &format!("end {}\n", self.child.id()));
            }
        }
        Ok(self.ended)
    }

    /// Waits until it has ended by itself.
    ///
    /// # Errors
    /// When it still runs after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("the end of {}", self.name);
        Deadline::after(limit).wait(&what, || self.ended())
    }

    /// SIGKILL, and waits for the end.
    ///
    /// # Errors
    /// When the process cannot be signalled or does not end.
    pub fn kill(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.wait(Duration::from_secs(10)).map(drop)
    }

    /// SIGTERM; see [`Process::wait`] for the end.
    ///
    /// # Errors
    /// When the process cannot be signalled.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// SIGSTOP: it stands still and its connections stay open.
    ///
    /// # Errors
    /// When the process cannot be signalled.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// When the process cannot be signalled.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        let id = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("a process id is positive")?;
        kill_process(id, signal).with_context(|| format!("{}: send {signal:?}", self.name))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The exit code, or 128 + the signal as a shell shows it.
#[must_use]
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// A shell that waits for the end of this process (its stdin closes), then kills what is still running and removes
/// the scratch folder, unless a file `keep` lies in it.
fn reaper() -> &'static Mutex<Child> {
    const SCRIPT: &str = r#"
        trap '' INT TERM HUP
        pids=' '
        while read -r what pid; do
            case $what in
                start) pids="$pids$pid " ;;
                end) pids="${pids%% $pid *} ${pids#* $pid }" ;;
            esac
        done
        for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
        [ -e "$1/keep" ] || { sleep 0.3; rm -rf "$1"; }
    "#;
    static REAPER: OnceLock<Mutex<Child>> = OnceLock::new();
    REAPER.get_or_init(|| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "reaper"]).arg(places::scratch()).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Mutex::new(shell.spawn().expect("every system of these tests has /bin/sh"))
    })
}

fn tell(reaper: &Mutex<Child>, line: &str) {
    let mut reaper = reaper.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stdin) = reaper.stdin.as_mut() {
        let _ = stdin.write_all(line.as_bytes());
    }
}

/// Sleeps: the tests' only way to let time pass.
pub fn sleep_ms(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}
