//! The fuzz targets of the crate `twinlog-fuzz`: building them on the stable compiler, and runs of limited length.
//!
//! `cargo fuzz` asks for a nightly compiler because of its sanitizers. There is no unsafe code to be found out by those:
//! coverage alone is enough, and stable has that.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    places,
    process::{Process, exit_code},
    real::kafka::tail,
};

/// What libFuzzer needs to see where an input leads: edges, comparisons, and the table of places.
const COVERAGE: &str = "--cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-trace-compares -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table";
/// More memory than any input may make a target take.
const MEMORY_MIB_MAX: u32 = 512;
/// A single input that takes so long is a finding.
const INPUT_SECONDS_MAX: u32 = 10;

/// A target and the inputs from which it goes on.
#[derive(Clone, Debug)]
pub struct Target {
    /// That of its file, without the extension.
    pub name: String,
    seeds: PathBuf,
}

/// All targets, by name.
///
/// # Errors
/// When one has no inputs in the repository.
pub fn targets() -> Result<Vec<Target>> {
    let folder = places::repository().join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("a target has a name")?.to_owned();
        let fixtures = places::repository().join("tests/fixtures");
        // Real files are the best inputs that there are.
        let seeds = if name == "configuration" {
            fixtures.join("configs")
        } else {
            fixtures.join("corpus").join(&name)
        };
        ensure!(seeds.is_dir(), "{name} has no inputs: put some into {}", seeds.display());
        targets.push(Target { name, seeds });
    }
    targets.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(targets)
}

/// Builds all targets; returns the folder of their programs.
///
/// # Errors
/// What cargo said when they do not build.
pub fn build() -> Result<PathBuf> {
    let (folder, host) = (places::target()?.join("fuzz"), host()?);
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Naming the machine's own triple keeps build scripts and macros, which run while it is built, without coverage.
    command.args([
        "build",
        "--quiet",
        "--package",
        "twinlog-fuzz",
        "--profile",
        "fuzzing",
        "--target",
        &host,
    ]);
    command.arg("--target-dir").arg(&folder).env("RUSTFLAGS", COVERAGE).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let run = command.current_dir(places::repository()).stdin(Stdio::null()).output().context("run cargo")?;
    ensure!(run.status.success(), "cargo build of the targets: {}", String::from_utf8_lossy(&run.stderr));
    Ok(folder.join(host).join("fuzzing"))
}

fn host() -> Result<String> {
    let run = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output();
    let told = String::from_utf8(run.context("run rustc")?.stdout)?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names the host")?.to_owned())
}

/// A target that runs.
#[derive(Debug)]
pub struct Run {
    target: String,
    process: Process,
    log: PathBuf,
    limit: Duration,
}

impl Target {
    /// Starts the target's program in the folder `programs` for `seconds`. What it finds on its way is kept in
    /// `fuzz/corpus`, what breaks it in `fuzz/artifacts`.
    ///
    /// # Errors
    /// When a folder cannot be made or the program cannot be started.
    pub fn start(&self, programs: &Path, seconds: u32) -> Result<Run> {
        let fuzz = places::repository().join("fuzz");
        let [found, broken] = ["corpus", "artifacts"].map(|folder| fuzz.join(folder).join(&self.name));
        for folder in [&found, &broken] {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        let mut command = Command::new(programs.join(&self.name));
        command.arg(format!("-max_total_time={seconds}"));
        command.arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        command.arg(format!("-artifact_prefix={}/", broken.display()));
        command.arg("-print_final_stats=1").arg(&found).arg(&self.seeds);
        let log = places::scratch().join(format!("{}.log", self.name));
        let process = Process::start(&self.name, command, &log)?;
        // It reads its inputs first, and looks at the clock between two of them.
        let limit = Duration::from_secs(u64::from(seconds)) + Duration::from_secs(300);
        Ok(Run { target: self.name.clone(), process, log, limit })
    }
}

impl Run {
    /// Waits for the end.
    ///
    /// # Errors
    /// A finding, with the last lines that were said and the input's file; or a run that tried nothing.
    pub fn wait(mut self) -> Result<Told> {
        let status = self.process.wait(self.limit).with_context(|| tail(&self.log, 5))?;
        let said = fs::read_to_string(&self.log).with_context(|| format!("read {}", self.log.display()))?;
        if !status.success() {
            places::keep();
            bail!("{} ended with {}:\n{}", self.target, exit_code(status), tail(&self.log, 30));
        }
        Told::read(&self.target, &said).with_context(|| tail(&self.log, 10))
    }
}

/// What a run without a finding tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    target: String,
    inputs: u64,
    /// Places in the code that were reached.
    places: u64,
    peak_mib: u64,
}

impl Told {
    fn read(target: &str, said: &str) -> Result<Self> {
        let number = |text: Option<&str>| text.and_then(|text| text.split_whitespace().next()?.parse().ok());
        let stat = |key: &str| number(said.lines().find_map(|line| line.strip_prefix(key)));
        let inputs: u64 =
            stat("stat::number_of_executed_units:").context("it does not tell how much it did")?;
        let peak_mib = stat("stat::peak_rss_mb:").context("it does not tell what memory it took")?;
        let reached = said.lines().rev().find_map(|line| line.split_once(" cov: ")).map(|(_, behind)| behind);
        let places = number(reached).context("it does not see where its inputs lead")?;
        ensure!(inputs > 0 && places > 0, "it tried {inputs} inputs that led to {places} places");
        Ok(Self { target: target.to_owned(), inputs, places, peak_mib })
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, inputs, places, peak_mib } = self;
        write!(f, "{target}: {inputs} inputs, {places} places, {peak_mib} MiB at most, no finding")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_inputs() {
        let names: Vec<String> = targets().unwrap().into_iter().map(|target| target.name).collect();
        assert!(names.contains(&"partition_ops".to_owned()) && names.contains(&"configuration".to_owned()));
    }

    #[test]
    fn what_libfuzzer_says_at_the_end_is_read() {
        let said = "#2\tINITED cov: 12 ft: 13 corp: 1/1b\n#900\tDONE   cov: 345 ft: 1 corp: 9/1Kb\n\
                    stat::number_of_executed_units: 900\nstat::peak_rss_mb:              41\n";
        let told = Told::read("answer", said).unwrap();
        assert_eq!(told.to_string(), "answer: 900 inputs, 345 places, 41 MiB at most, no finding");
    }

    #[test]
    fn a_run_that_sees_nothing_is_no_proof() {
        let blind = "#2\tDONE exec/s: 0\nstat::number_of_executed_units: 900\nstat::peak_rss_mb: 41\n";
        assert!(Told::read("answer", blind).is_err());
        assert!(Told::read("answer", "").is_err());
    }
}
