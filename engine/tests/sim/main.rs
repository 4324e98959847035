//! A deterministic simulation of the machines: virtual clock, seeded chance, naive models of the clusters.
//!
//! - `random`: fresh seeds, some hundred of each family; `TWINLOG_SIM_SEEDS=100000` runs that many,
//!   `TWINLOG_SIM_FIRST` sets the first one, `TWINLOG_SIM_LINES` how much of a failure's trace is printed.
//! - `seeds`: seeds that failed once. A new one goes there with the sentence that says what it found.
//! - `meta`: the simulation itself: same seed, same trace.
//! - `twins`: what decides where to go on, beside naive twins.
//!
//! `run` puts a schedule together; `plan` says what a seed draws, `faults` what may go wrong, `checker` what has to
//! hold. The model: `replica`, `partition`, `cluster` (target), `source`, `upstream`, `net`; ours:
//! `instance`, `identity`, `drive`, `commands`, `transport`.

mod checker;
mod cluster;
mod commands;
mod drive;
mod faults;
mod identity;
mod instance;
mod meta;
mod net;
mod partition;
mod plan;
mod random;
mod replica;
mod run;
mod seeds;
mod source;
mod trace;
mod transport;
mod twins;
mod upstream;
mod world;
