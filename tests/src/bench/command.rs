//! What every command that measures begins with.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::places;

/// Says so where the figures would mislead.
pub fn warn_of_a_debug_build() {
    if cfg!(debug_assertions) {
        eprintln!("A debug build: its figures say nothing about twinlog. Measure with cargo run --release.");
    }
}

/// The folder for properties files and logs: the one that was asked for, else one that goes with the process.
///
/// # Errors
/// When it cannot be made.
pub fn folder_for_logs(asked: Option<&Path>, name: &str) -> io::Result<PathBuf> {
    let folder = asked.map_or_else(|| places::scratch().join(name), Path::to_path_buf);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
