//! What the tests share: real brokers, the judge, the proxy, the program under test, and the scenarios.
//!
//! # Which test file covers what
//! A new test belongs to the file whose sentence it makes longer; a test without a socket and without a broker belongs
//! to the bottom of the file that it tests.
//!
//! - `real_copy`: one copy from beginning to end between real clusters; a new kind of record or batch goes here.
//! - `real_kinds`: batches that are written anew, made by real brokers or at random; a new kind of those goes here.
//! - `real_kills`: crashes, rivals, lost answers under live writing; a new way to interrupt twinlog goes here.
//! - `real_losses`: records that a cluster loses, and what is told of it; a new way to lose some goes here.
//! - `real_lies`: answers that lie, of every kind; a new kind of answer or of lie goes here.
//! - `real_target`: what a three-broker target does to a copy; a new trick of brokers goes here.
//! - `real_identity`: rival machines without the rest of twinlog; a new way to send a batch at the wrong time goes here.
//! - `real_topics`: making, naming, finding, leaving out topics, where they begin, how their partitions fare; a new rule about topics
//!   or configs goes here.
//! - `real_flows`: several flows and clusters, in one process or more; quotas; a new way to combine them goes here.
//! - `real_judge`: the harness itself: that the judge fails whatever is not equal, that nothing survives a test.
//! - `protocol_golden`: frames captured from real brokers and clients decode, and encode to the same bytes; a frame of
//!   another kind or version goes here.
//! - `batch_golden`: logs, Fetch and Produce answers of real brokers; what another client or codec writes goes here.
//! - `corpus_replay`: the inputs of the fuzz targets, on stable; an input that broke one is a file of theirs.
//! - `mm2_behaviours`: the table of what MM2's own tests assert; a test or scenario that shows another row goes into it.
//! - `instruction_counts`: what a batch costs on the hot path; a shape of batches that nothing there is like goes into
//!   `engine/benches/hot_path.rs`.
//! - `tidy`: the rules of the layout.
//!
//! # How the scenarios are run
//! Each test on real clusters calls one function of [`scenario`] at a small [`scenario::Scale`]; the program `full`
//! (`cargo run -p twinlog-tests --bin full -- --help`) calls the same functions with the figures that are claimed. What takes
//! a minute by itself (beside MirrorMaker 2, quotas, managed targets) is in `full` alone.

pub mod bench;
pub mod capture_logs;
pub mod deadline;
pub mod delay;
pub mod fuzzing;
pub mod identity;
pub mod judge;
pub mod lies;
pub mod places;
pub mod process;
pub mod proxy;
pub mod real;
pub mod scenario;
pub mod static_build;
pub mod tally;
pub mod twinlog;
