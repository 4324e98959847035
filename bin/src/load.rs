//! Reads the properties file that the operator named.

use std::{fmt, fs::File, io, io::Read as _, path::Path};

use twinlog_engine::config::{ConfigErrors, Inspection, MirrorConfig, Surroundings};

/// Far above any file that configures a mirror, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why a file gives no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// It could not be read.
    Unreadable(#[from] io::Error),
    /// It is larger than [`FILE_BYTES_MAX`].
    TooLarge,
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
            Self::Faults(errors) => errors.faults().iter().map(ToString::to_string).collect(),
        }
    }

    /// What else reads oddly in a file that cannot be used, one sentence each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            Self::Unreadable(_) | Self::TooLarge => Vec::new(),
            Self::Faults(errors) => errors.warnings().iter().map(ToString::to_string).collect(),
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
    let config = MirrorConfig::from_properties(&read(file)?)?;
    Ok(if clusters.is_empty() { config } else { config.only_into(clusters)? })
}

/// Reads `file`, properties or a connector's JSON, and says what it means, faults included.
pub(crate) fn inspection(file: &Path) -> Result<Inspection, LoadError> {
    Ok(Inspection::of_file(&read(file)?, Surroundings::process()))
}

fn read(file: &Path) -> Result<Vec<u8>, LoadError> {
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
    }

    #[test]
    fn every_fault_is_a_sentence() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "clusters=a,b\na->b.enabled=true\nthrottle=1\n").unwrap();
        assert_eq!(sentences(file.path()).len(), 3);
    }
}
