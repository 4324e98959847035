//! The static program: how it is built, what its file says, and how it runs alone in an empty root.
//!
//! The command `static_build` does all of it.

pub mod elf;
mod empty_root;
mod run;

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

pub use self::empty_root::EmptyRoot;
pub use self::run::{Ended, run};
use crate::places;

/// x86-64, run here.
pub const X86_64: &str = "x86_64-unknown-linux-musl";
/// arm64, only built here.
pub const ARM64: &str = "aarch64-unknown-linux-musl";

/// Builds twinlog in the release profile for `target`, or for this machine and its own C library, with the settings of
/// the repository's `.cargo/config.toml`.
///
/// # Errors
/// What cargo said when it does not build, and where the target is missing what to install.
pub fn build(target: Option<&str>) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let folder = places::target()?;
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--release", "--package", "twinlog", "--target-dir"]).arg(&folder);
    let mut built = folder;
    if let Some(target) = target {
        command.args(["--target", target]);
        built.push(target);
    }
    let run = command.current_dir(places::repository()).stdin(Stdio::null()).output().context("run cargo")?;
    let target = target.unwrap_or("this machine");
    ensure!(
        run.status.success(),
        "twinlog cannot be built for {target} (README, \"A static program\", says what that needs):\n{}",
        String::from_utf8_lossy(&run.stderr)
    );
    Ok(built.join("release/twinlog"))
}
