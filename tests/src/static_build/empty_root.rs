//! A root directory with nothing in it but the program and the files that a run is given.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{places, twinlog::FlowFile};

/// A folder that a program sees as `/`.
#[derive(Debug)]
pub struct EmptyRoot(PathBuf);

impl EmptyRoot {
    /// A fresh folder with a copy of `program` as `/twinlog`.
    ///
    /// # Errors
    /// When the folder cannot be filled, or this process may not change roots.
    pub fn new(program: &Path) -> Result<Self> {
        let root = rustix::process::geteuid().is_root();
        ensure!(root, "only root may give a program another root directory: run this command as root");
        let folder = places::scratch().join(format!("empty-root-{:08x}", fastrand::u32(..)));
        fs::create_dir(&folder)?;
        let copied = fs::copy(program, folder.join("twinlog"));
        copied.with_context(|| format!("copy {}", program.display()))?;
        Ok(Self(folder))
    }

    /// Adds a file; `path` begins with `/`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&self, path: &str, text: &str) -> Result<()> {
        let file = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(file.parent().context("a file lies in a folder")?)?;
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))
    }

    /// Adds a properties file, and tells its path in this root.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_flows(&self, flows: &FlowFile) -> Result<String> {
        let file = flows.write(&self.0)?;
        let name = file.file_name().context("a file has a name")?;
        Ok(format!("/{}", name.to_string_lossy()))
    }

    /// `/twinlog` in this root, with an environment that is as empty.
    #[must_use]
    pub fn command(&self) -> Command {
        // chroot(8) becomes the program: what the process uses is the program's own use.
        let mut command = Command::new("chroot");
        command.arg(&self.0).arg("/twinlog").env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }
}
