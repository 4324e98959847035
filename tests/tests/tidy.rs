//! The rules of the layout, so that they are not lost: sizes, first lines, purity, no leftovers, no dead files.

#![allow(clippy::unwrap_used, reason = "helpers of tests: a panic is the failure")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Block, Expr, ImplItemFn, Item, ItemFn, ItemMod, Signature, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};
use twinlog_tests::places::repository;

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// Folders with source of ours, and the words that each may not use outside its tests.
const CRATES: [&str; 5] = ["protocol", "engine", "bin", "tests", "fuzz"];
const PURE: [&str; 2] = ["protocol/src", "engine/src/machine"];
const IMPURE_WORDS: [&str; 8] = ["tokio", "net", "Instant", "SystemTime", "rand", "fastrand", "thread", "fs"];

/// Every `.rs` file below the crates, relative to the repository, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for folder in CRATES {
        collect(&repository().join(folder), &mut files);
    }
    assert!(files.len() > 20, "only {} files found: does the test look in the right place?", files.len());
    files.into_iter().map(|file| (relative(&file), fs::read_to_string(&file).unwrap())).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "corpus", "artifacts", "fixtures"].contains(&name.as_str()) {
            collect(&path, files);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
}

fn relative(path: &Path) -> PathBuf {
    path.strip_prefix(repository()).unwrap().to_path_buf()
}

fn parsed(path: &Path, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether the whole file is test code.
fn is_test_file(path: &Path) -> bool {
    let text = path.to_string_lossy();
    path.starts_with("tests/tests")
        || path.ends_with("tests.rs")
        || text.contains("/tests/") && !path.starts_with("tests")
}

fn is_test_item(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().segments.last().is_some_and(|last| last.ident == "test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn files_are_short_and_say_first_what_they_are_for() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        let (lines, first) = (text.lines().count(), text.lines().next().unwrap_or_default());
        if lines > FILE_LINES_MAX {
            complaints.push(format!("{}: {lines} lines, at most {FILE_LINES_MAX}", path.display()));
        }
        // `foo/tests.rs` needs no sentence: it is the tests of `foo`.
        if !first.starts_with("//! ") && !first.starts_with("#![no_main]") && !path.ends_with("tests.rs") {
            complaints.push(format!("{}: the first line is not `//! what it is for`", path.display()));
        }
    }
    assert_none(&complaints);
}

/// What one file does wrong inside.
struct Inside<'a> {
    path: &'a Path,
    complaints: Vec<String>,
}

impl Inside<'_> {
    fn function(&mut self, signature: &Signature, block: &Block) {
        let lines = block.span().end().line - signature.span().start().line + 1;
        if lines > FUNCTION_LINES_MAX {
            let (path, name) = (self.path.display(), &signature.ident);
            self.complaints
                .push(format!("{path}: fn {name} has {lines} lines, at most {FUNCTION_LINES_MAX}"));
        }
    }
}

impl<'ast> Visit<'ast> for Inside<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test_item(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_test_item(&function.attrs) {
            self.function(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.function(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if let Expr::MethodCall(call) = expression
            && call.method == "unwrap"
        {
            let (path, line) = (self.path.display(), call.method.span().start().line);
            self.complaints.push(format!("{path}:{line}: unwrap() outside tests"));
        }
        visit::visit_expr(self, expression);
    }
}

#[test]
fn functions_are_short_and_never_unwrap() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        if is_test_file(&path) {
            continue;
        }
        let file = parsed(&path, &text);
        let mut inside = Inside { path: &path, complaints: Vec::new() };
        inside.visit_file(&file);
        complaints.append(&mut inside.complaints);
    }
    assert_none(&complaints);
}

#[test]
fn protocol_and_machines_know_no_socket_clock_or_chance() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        if !PURE.iter().any(|pure| path.starts_with(pure)) || is_test_file(&path) {
            continue;
        }
        for item in parsed(&path, &text).items {
            if !is_test_item(attributes(&item)) {
                impure_words(&path, item.to_token_stream(), &mut complaints);
            }
        }
    }
    assert_none(&complaints);
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(module) => &module.attrs,
        Item::Fn(function) => &function.attrs,
        Item::Use(import) => &import.attrs,
        Item::Impl(block) => &block.attrs,
        _ => &[],
    }
}

fn impure_words(path: &Path, tokens: TokenStream, complaints: &mut Vec<String>) {
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Group(group) => impure_words(path, group.stream(), complaints),
            // Modules of these names count where a path leads to them: `std::net`, `tokio::...`, `{fs, thread}`.
            TokenTree::Ident(word) if IMPURE_WORDS.iter().any(|impure| word == impure) => {
                let always = word != "net" && word != "fs" && word != "thread";
                if always || colons == 2 {
                    complaints.push(format!("{}: `{word}`", path.display()));
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == ':' => {
                colons += 1;
                continue;
            }
            _ => {}
        }
        colons = 0;
    }
}

#[test]
fn nothing_is_left_over() {
    // Spelt apart, or this file would find itself.
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("dbg", "!"),
        concat!("todo", "!("),
    ];
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        for (line, number) in text.lines().zip(1..) {
            if words.iter().any(|word| line.contains(word)) {
                complaints.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert_none(&complaints);
}

#[test]
fn every_file_is_part_of_a_crate() {
    let all: BTreeSet<PathBuf> = sources().into_iter().map(|(path, _)| path).collect();
    let mut reached = BTreeSet::new();
    for path in &all {
        let folder = path.parent().unwrap();
        let root =
            ["lib.rs", "main.rs", "build.rs"].iter().any(|name| path.ends_with(Path::new("src").join(name)));
        // Cargo finds these by itself.
        let found = ["bin", "tests", "examples", "benches", "bench", "fuzz_targets"];
        let target = found.iter().any(|name| folder.ends_with(name))
            && folder.parent().is_some_and(|up| {
                CRATES.iter().any(|name| up == Path::new(name)) || folder.ends_with("src/bin")
            });
        // A test of several files is a folder with a `main.rs`.
        let folder_of_test =
            path.ends_with("main.rs") && folder.parent().is_some_and(|up| up.ends_with("tests"));
        if root || target || folder_of_test {
            reach(path, folder, &all, &mut reached);
        }
    }
    let dead: Vec<String> =
        all.difference(&reached).map(|path| format!("{}: no module declares it", path.display())).collect();
    assert_none(&dead);
}

/// Follows the `mod name;` of a file whose modules lie in `folder`.
fn reach(path: &Path, folder: &Path, all: &BTreeSet<PathBuf>, reached: &mut BTreeSet<PathBuf>) {
    if !reached.insert(path.to_path_buf()) {
        return;
    }
    let text = fs::read_to_string(repository().join(path)).unwrap();
    for item in parsed(path, &text).items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let inner = folder.join(&name);
        for file in [folder.join(format!("{name}.rs")), inner.join("mod.rs")] {
            if module.content.is_none() && all.contains(&file) {
                reach(&file, &inner, all, reached);
            }
        }
    }
}

#[test]
fn the_tests_crate_names_every_test_file() {
    let index = fs::read_to_string(repository().join("tests/src/lib.rs")).unwrap();
    let mut missing = Vec::new();
    for entry in fs::read_dir(repository().join("tests/tests")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".rs")
            && !index.contains(&format!("`{stem}`"))
        {
            missing.push(format!("tests/src/lib.rs has no sentence about `{stem}`"));
        }
    }
    assert_none(&missing);
}
