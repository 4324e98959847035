//! Where things lie: the repository, the build's own folder, and the folder that this process fills and leaves empty.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use anyhow::{Context, Result};

/// The root of the repository.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests crate lies in the repository")
}

/// Cargo's folder of this profile, for example `target/debug`: this executable lies in it or in its `deps`.
///
/// # Errors
/// When the system does not tell where this executable lies.
pub fn profile() -> Result<PathBuf> {
    let executable = env::current_exe().context("where does this executable lie?")?;
    let folder = executable.parent().context("an executable lies in a folder")?;
    let inner = folder.ends_with("deps") || folder.ends_with("examples");
    Ok(if inner { folder.parent().context("deps lies in the profile's folder")? } else { folder }
        .to_path_buf())
}

/// Cargo's target folder: what is fetched once, such as Kafka's jars, stays in it.
///
/// # Errors
/// As [`profile`].
pub fn target() -> Result<PathBuf> {
    Ok(profile()?.parent().context("a profile lies in the target folder")?.to_path_buf())
}

/// The folder of everything that this process writes. The reaper removes it when the process has ended, unless
/// [`keep`] was called.
#[must_use]
pub fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<PathBuf> = OnceLock::new();
    SCRATCH.get_or_init(|| {
        let path = env::temp_dir().join(format!("twinlog-tests-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        path
    })
}

/// Leaves the files of this process where they are, for whoever looks at a failure.
pub fn keep() {
    let _ = fs::write(scratch().join("keep"), "a test failed: see the logs beside this file\n");
}
