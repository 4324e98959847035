//! Reads the file that the operator named.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use twinlog_engine::config::{ConfigErrors, Inspection, MirrorConfig, Surroundings, is_connector};

/// Far above any file that configures a mirror, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a pipe may take: whoever writes into it may never come, or never end.
const PIPE_WAIT: Duration = Duration::from_secs(10);

/// Why a file gives no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// It could not be read.
    Unreadable(#[from] io::Error),
    /// It is larger than [`FILE_BYTES_MAX`].
    TooLarge,
    /// It is a pipe or a terminal that did not end in time.
    NoEnd(Duration),
    /// It holds a connector's JSON, which `run` does not take.
    Connector,
    /// It was read and cannot be used.
    Faults(#[from] ConfigErrors),
}

impl LoadError {
    /// One sentence for each fault.
    pub(crate) fn sentences(&self) -> Vec<String> {
        match self {
            Self::Unreadable(error) => vec![format!("cannot be read: {error}")],
            Self::TooLarge => {
                vec![format!("larger than {FILE_BYTES_MAX} bytes: not a file that configures a mirror")]
            }
            Self::NoEnd(waited) => {
                let seconds = waited.as_secs();
                vec![format!("cannot be read: not a regular file, and it did not end within {seconds} s")]
            }
            Self::Connector => vec![
                "holds JSON, as connectors are posted to Connect: `run` takes a properties file with `clusters`. `twinlog check` \
                 says what a connector's JSON means; running it comes with the REST interface, which is not built yet"
                    .to_owned(),
            ],
            Self::Faults(errors) => errors.faults().iter().map(ToString::to_string).collect(),
        }
    }

    /// What else reads oddly in a file that cannot be used, one sentence each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            Self::Faults(errors) => errors.warnings().iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences().join("\n"))
    }
}

/// Reads and understands `file`; keeps the flows into `clusters` when any are named.
pub(crate) fn mirror_config(file: &Path, clusters: &[String]) -> Result<MirrorConfig, LoadError> {
    let bytes = read(file, PIPE_WAIT)?;
    if is_connector(&bytes) {
        return Err(LoadError::Connector);
    }
    Ok(match clusters {
        [] => MirrorConfig::from_properties(&bytes)?,
        targets => MirrorConfig::from_properties_into(&bytes, targets)?,
    })
}

/// Reads `file`, properties or a connector's JSON, and says what it means, faults included; of the flows into `clusters` when
/// any are named.
pub(crate) fn inspection(file: &Path, clusters: &[String]) -> Result<Inspection, LoadError> {
    let bytes = read(file, PIPE_WAIT)?;
    Ok(match clusters {
        [] => Inspection::of_file(&bytes, Surroundings::process()),
        targets => Inspection::of_file_into(&bytes, targets, Surroundings::process()),
    })
}

fn read(file: &Path, wait: Duration) -> Result<Vec<u8>, LoadError> {
    let metadata = fs::metadata(file)?;
    if metadata.is_file() || metadata.is_dir() {
        return read_to_end(file);
    }
    // To open a pipe may take for ever as well. A thread that still waits ends with the process.
    let (sender, receiver) = mpsc::channel();
    let path: PathBuf = file.to_owned();
    thread::Builder::new().spawn(move || sender.send(read_to_end(&path)))?;
    receiver.recv_timeout(wait).unwrap_or(Err(LoadError::NoEnd(wait)))
}

fn read_to_end(file: &Path) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    File::open(file)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(LoadError::TooLarge);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(file: &Path) -> Vec<String> {
        mirror_config(file, &[]).unwrap_err().sentences()
    }

    #[test]
    fn files_that_cannot_be_read_say_why() {
        let folder = tempfile::tempdir().unwrap();
        assert!(sentences(&folder.path().join("none"))[0].starts_with("cannot be read: No such file"));
        assert!(sentences(folder.path())[0].starts_with("cannot be read: Is a directory"));
    }

    #[test]
    fn a_huge_file_is_not_read_to_its_end() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(FILE_BYTES_MAX * 1000).unwrap();
        assert!(sentences(file.path())[0].starts_with("larger than"));
        assert!(sentences(Path::new("/dev/zero"))[0].starts_with("larger than"));
    }

    #[test]
    fn a_pipe_that_nobody_ends_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let [unwritten, written] = ["unwritten", "written"].map(|name| folder.path().join(name));
        assert!(
            std::process::Command::new("mkfifo").args([&unwritten, &written]).status().unwrap().success()
        );
        let given_up = read(&unwritten, Duration::from_millis(20)).unwrap_err();
        assert!(given_up.to_string().contains("did not end within"), "{given_up}");
        thread::spawn({
            let written = written.clone();
            move || fs::write(written, "clusters=a")
        });
        assert_eq!(read(&written, PIPE_WAIT).unwrap(), b"clusters=a");
    }

    #[test]
    fn every_fault_is_a_sentence() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "clusters=a,b\na->b.enabled=true\nthrottle=1\n").unwrap();
        assert_eq!(sentences(file.path()).len(), 3);
    }
}
