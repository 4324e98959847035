//! MM2's own tests as a table: every behaviour has a row, and what a row says is shown is shown.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{collections::BTreeMap, fs, path::Path};

use syn::{ItemFn, visit::Visit};
use twinlog_tests::places::repository;

const TABLE: &str = include_str!("../fixtures/mm2-behaviours.tsv");
/// Behaviours that MM2's tests assert; one with several assertions has a row for each, with a letter.
const BEHAVIOURS: u32 = 139;
/// Parts of the product that are to come.
const LATER: [&str; 9] = [
    "ACLs",
    "checkpoints and offset syncs",
    "client classes",
    "heartbeats",
    "metrics",
    "positions",
    "REST",
    "TLS and SASL",
    "transactions",
];

struct Row {
    /// Such as `2b`.
    name: String,
    number: u32,
    letter: Option<char>,
    cells: Vec<&'static str>,
}

impl Row {
    fn parse(line: &'static str) -> Self {
        let cells: Vec<&str> = line.split('\t').collect();
        let digits = cells[0].trim_end_matches(|c: char| c.is_ascii_lowercase());
        let mut letters = cells[0][digits.len()..].chars();
        let (letter, more) = (letters.next(), letters.next());
        assert_eq!(more, None, "{line}: at most one letter");
        Self { name: cells[0].to_owned(), number: digits.parse().unwrap(), letter, cells }
    }

    fn state(&self) -> (&'static str, &'static str) {
        (self.cells[3], self.cells[4])
    }
}

fn rows() -> Vec<Row> {
    TABLE.lines().filter(|line| !line.starts_with('#')).map(Row::parse).collect()
}

#[test]
fn every_behaviour_has_its_rows_in_order() {
    let mut letters: BTreeMap<u32, Vec<Option<char>>> = BTreeMap::new();
    let rows = rows();
    assert!(rows.is_sorted_by_key(|row| (row.number, row.letter)), "rows stand in order");
    for row in &rows {
        assert!((5..=6).contains(&row.cells.len()), "{}: {} cells", row.name, row.cells.len());
        assert!(
            row.cells.iter().all(|cell| !cell.is_empty() && cell.trim() == *cell),
            "{}: an empty cell",
            row.name
        );
        assert!(row.cells[1].contains('#'), "{}: `{}` is not class#method", row.name, row.cells[1]);
        letters.entry(row.number).or_default().push(row.letter);
    }
    assert!(letters.keys().copied().eq(1..=BEHAVIOURS), "numbers: {:?}", letters.keys());
    for (number, letters) in letters {
        let is_alone = letters == [None];
        let is_split =
            letters.len() > 1 && letters.iter().copied().eq(('a'..='z').take(letters.len()).map(Some));
        assert!(is_alone || is_split, "{number}: {letters:?}");
    }
}

#[test]
fn what_comes_later_names_its_part_and_what_is_not_ours_a_reason() {
    for row in rows() {
        match row.state() {
            ("shown", _) => {}
            ("later", part) => assert!(LATER.contains(&part), "{}: no part is called `{part}`", row.name),
            ("not ours", reason) => assert!(reason.contains(' '), "{}: `{reason}` is no reason", row.name),
            (state, _) => panic!("{}: `{state}`", row.name),
        }
    }
}

#[test]
fn what_is_shown_is_shown_by_a_test_or_a_scenario() {
    let scenarios_run = scenarios_run();
    let mut complaints = Vec::new();
    let mut places = 0;
    for row in rows().iter().filter(|row| row.state().0 == "shown") {
        for place in row.state().1.split(", ") {
            places += 1;
            if let Err(complaint) = find(place, &scenarios_run) {
                complaints.push(format!("{}: {place}: {complaint}", row.name));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(places > 50, "only {places} places");
}

/// Finds the function of `path::function`.
fn find(place: &str, scenarios_run: &str) -> Result<(), String> {
    let (path, name) = place.rsplit_once("::").ok_or("not path::function")?;
    let text = fs::read_to_string(repository().join(path)).map_err(|error| error.to_string())?;
    let mut functions = Functions::default();
    functions.visit_file(&syn::parse_file(&text).map_err(|error| error.to_string())?);
    let is_test = *functions.0.get(name).ok_or("no such function")?;
    if !path.starts_with("tests/src/scenario/") {
        return if is_test { Ok(()) } else { Err("not a #[test]".to_owned()) };
    }
    let module = Path::new(path).file_stem().unwrap().to_string_lossy();
    let is_run = scenarios_run.contains(&format!("{module}::{name}("));
    if is_run { Ok(()) } else { Err("no test runs this scenario".to_owned()) }
}

/// The text of the tests on real brokers, each of which runs a scenario.
fn scenarios_run() -> String {
    let files = fs::read_dir(repository().join("tests/tests")).unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    let real = paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("real_"));
    real.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The functions of a file, and whether each is a test that is run.
#[derive(Default)]
struct Functions(BTreeMap<String, bool>);

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let has = |name: &str| {
            function
                .attrs
                .iter()
                .any(|attribute| attribute.path().segments.last().is_some_and(|last| last.ident == name))
        };
        *self.0.entry(function.sig.ident.to_string()).or_default() |= has("test") && !has("ignore");
    }
}
