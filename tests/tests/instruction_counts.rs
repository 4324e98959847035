//! A guard of the hot path: the instructions that a batch costs, counted by valgrind, beside the figures of the last
//! change that meant to alter them.
//!
//! Instructions are the same on a busy machine and on an idle one. They depend on the compiler, so the file names it, and
//! under another one only a jump counts.

#![allow(clippy::unwrap_used, reason = "helpers of tests: a panic is the failure")]

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use twinlog_tests::places;

const ACCEPT: &str = "TWINLOG_ACCEPT_COUNTS";

/// By how much a count may differ from the accepted one, in percent.
const TOLERANCE: u64 = 3;
/// The same where another compiler made the program.
const TOLERANCE_OTHER_COMPILER: u64 = 20;

/// Instructions of one batch, by the name of its shape.
type Counts = BTreeMap<String, u64>;

/// What was accepted, and under which compiler.
#[derive(Clone, Debug, PartialEq)]
struct Accepted {
    compiler: String,
    counts: Counts,
}

fn accepted_file() -> PathBuf {
    places::repository().join("tests/fixtures/instruction-counts.tsv")
}

impl Accepted {
    fn to_text(&self) -> String {
        let lines = self.counts.iter().map(|(name, count)| format!("{name}\t{count}\n"));
        format!(
            "# Instructions that one batch costs on the hot path. {ACCEPT}=1 cargo test -p twinlog-tests --test\n\
             # instruction_counts writes this file.\n\
             compiler\t{}\n{}",
            self.compiler,
            lines.collect::<String>()
        )
    }

    fn from_text(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut fields: BTreeMap<&str, &str> = lines.map(|line| line.split_once('\t').unwrap()).collect();
        let compiler = fields.remove("compiler").unwrap().to_owned();
        let counts = fields.into_iter().map(|(name, count)| (name.to_owned(), count.parse().unwrap()));
        Self { compiler, counts: counts.collect() }
    }

    /// One sentence for each shape that costs more or less than was accepted.
    fn complaints(&self, found: &Self) -> Vec<String> {
        let same = self.compiler == found.compiler;
        let tolerance = if same { TOLERANCE } else { TOLERANCE_OTHER_COMPILER };
        if !self.counts.keys().eq(found.counts.keys()) {
            let (were, are) = (self.counts.keys(), found.counts.keys());
            return vec![format!("accepted are counts of {were:?}, found are {are:?}")];
        }
        let complaint = |((name, found), accepted): ((&String, &u64), &u64)| {
            (found.abs_diff(*accepted) * 100 > tolerance * accepted)
                .then(|| format!("a batch of {name} costs {found} instructions instead of {accepted}"))
        };
        found.counts.iter().zip(self.counts.values()).filter_map(complaint).collect()
    }
}

#[test]
fn a_batch_costs_the_instructions_that_were_accepted() {
    let program = build();
    let found = Accepted { compiler: compiler(), counts: count_all(&program) };
    print!("{}", found.to_text());
    if env::var_os(ACCEPT).is_some() {
        fs::write(accepted_file(), found.to_text()).unwrap();
        return;
    }
    let accepted = Accepted::from_text(&fs::read_to_string(accepted_file()).unwrap());
    let complaints = accepted.complaints(&found);
    assert!(
        complaints.is_empty(),
        "\n{}\nAllowed are {} % each way ({} % under another compiler; accepted under {}, this is {}).\n\
         If it is meant, or better than before, accept it by {ACCEPT}=1 cargo test -p twinlog-tests --test \
         instruction_counts, and say in the commit why.\n",
        complaints.join("\n"),
        TOLERANCE,
        TOLERANCE_OTHER_COMPILER,
        accepted.compiler,
        found.compiler
    );
}

/// The program that walks batches, optimised; its path.
fn build() -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--profile", "counted", "--package", "twinlog-engine"]);
    command.args(["--bench", "hot_path", "--message-format", "json", "--target-dir"]);
    command.arg(places::target().unwrap()).current_dir(places::repository()).stdin(Stdio::null());
    let run = command.output().unwrap();
    assert!(run.status.success(), "hot_path does not build:\n{}", String::from_utf8_lossy(&run.stderr));
    let messages = String::from_utf8(run.stdout).unwrap();
    let executable = messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    executable.expect("cargo names the executable that it built")
}

fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let run = Command::new(rustc).arg("--version").current_dir(places::repository()).output().unwrap();
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

fn count_all(program: &Path) -> Counts {
    let shapes = Command::new(program).output().unwrap();
    let shapes = String::from_utf8(shapes.stdout).unwrap();
    thread::scope(|scope| {
        let counting = shapes.lines().map(|line| {
            let (name, batches) = line.split_once('\t').unwrap();
            let batches: u64 = batches.parse().unwrap();
            let count =
                move || (instructions(program, name, "all") - instructions(program, name, "none")) / batches;
            (name.to_owned(), scope.spawn(count))
        });
        let counting: Vec<_> = counting.collect();
        counting.into_iter().map(|(name, count)| (name, count.join().unwrap())).collect()
    })
}

/// All instructions of one run.
fn instructions(program: &Path, shape: &str, forwarded: &str) -> u64 {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    // What the environment holds lies on the stack, and moves what is aligned behind it.
    valgrind.arg(program).args([shape, forwarded]).env_clear().stdin(Stdio::null());
    valgrind.env("PATH", env::var_os("PATH").unwrap_or_default());
    let run = valgrind.output().expect("instructions are counted by valgrind: apt-get install valgrind");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let count = said.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, count)| count.trim());
    count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count in:\n{said}"))
}

fn accepted(compiler: &str, count: u64) -> Accepted {
    let counts = [("1 KB".to_owned(), count), ("1 MB".to_owned(), 2000)].into();
    Accepted { compiler: compiler.to_owned(), counts }
}

#[test]
fn more_and_fewer_instructions_than_accepted_are_told() {
    let base = accepted("rustc 1", 1000);
    for (count, told) in [(970, 0), (969, 1), (1030, 0), (1031, 1)] {
        assert_eq!(base.complaints(&accepted("rustc 1", count)).len(), told, "{count}");
    }
    for (count, told) in [(800, 0), (799, 1), (1200, 0), (1201, 1)] {
        assert_eq!(base.complaints(&accepted("rustc 2", count)).len(), told, "{count}, other compiler");
    }
}

#[test]
fn a_shape_that_only_one_side_knows_is_told() {
    let base = accepted("rustc 1", 1000);
    let mut fewer = base.clone();
    fewer.counts.remove("1 MB");
    assert_eq!(base.complaints(&fewer).len(), 1);
    assert_eq!(fewer.complaints(&base).len(), 1);
    let mut other = fewer;
    other.counts.insert("2 MB".to_owned(), 2000);
    assert_eq!(base.complaints(&other).len(), 1);
}

#[test]
fn the_file_of_accepted_counts_reads_as_it_was_written() {
    let base = accepted("rustc 1.95.0 (59807616e 2026-04-14)", 1000);
    assert_eq!(Accepted::from_text(&base.to_text()), base);
}
