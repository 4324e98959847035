//! What Kafka's own config providers give for a reference. Each file is read once for a configuration, and all of them
//! together are bounded.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::Reference;
use crate::config::properties::Properties;
use crate::policy::PatternList;

/// Bytes of a file with secrets; far above any real one.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of all files together, for the same reason.
const FILES_BYTES_MAX: usize = 16 << 20;
/// Bytes that all references of a configuration give together: a short one may ask for a long text many times.
const GIVEN_BYTES_MAX: usize = 16 << 20;

/// Where providers look. [`Surroundings::process`] is the real one.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Content of a file.
    pub file: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Value of an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Surroundings<'_> {
    /// The file system and environment of this process.
    #[must_use]
    pub fn process() -> Self {
        Self { file: &read_file, variable: &|name| env::var(name).ok() }
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Surroundings")
    }
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe may never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// Why a reference gives nothing, and what to do. Never with a secret in it.
pub(super) type Trouble = (String, String);

/// One of Kafka's providers with its parameters.
#[derive(Debug)]
pub(super) enum Provider {
    File { allowed: Vec<PathBuf> },
    Directory { allowed: Vec<PathBuf> },
    Environment { allowed: Option<PatternList> },
}

/// What was read for one configuration.
pub(super) struct Lookups<'s> {
    surroundings: Surroundings<'s>,
    files: HashMap<PathBuf, Result<Rc<[u8]>, Trouble>>,
    properties: HashMap<PathBuf, Result<Rc<Properties>, Trouble>>,
    files_bytes: usize,
    given_bytes: usize,
}

impl<'s> Lookups<'s> {
    pub(super) fn new(surroundings: Surroundings<'s>) -> Self {
        let (files, properties) = (HashMap::new(), HashMap::new());
        Self { surroundings, files, properties, files_bytes: 0, given_bytes: 0 }
    }

    /// What `provider` gives for a reference.
    pub(super) fn look_up(
        &mut self,
        provider: &Provider,
        reference: Reference<'_>,
    ) -> Result<String, Trouble> {
        provider.check_shape(reference)?;
        if self.given_bytes > GIVEN_BYTES_MAX {
            let reason = format!("config providers give more than {GIVEN_BYTES_MAX} bytes in all");
            return Err((reason, "refer to long texts less often".to_owned()));
        }
        let given = self.given(provider, reference)?;
        self.given_bytes = self.given_bytes.saturating_add(given.len());
        Ok(given)
    }

    fn given(&mut self, provider: &Provider, reference: Reference<'_>) -> Result<String, Trouble> {
        let Reference { path, key, .. } = reference;
        match provider {
            Provider::File { allowed } => {
                let file = self.properties(Path::new(path), allowed)?;
                match file.find(key) {
                    Some(found) => Ok(found.value.as_str().to_owned()),
                    None => Err((format!("`{path}` holds no key `{key}`"), "add it there".to_owned())),
                }
            }
            Provider::Directory { allowed } => {
                if Path::new(key).components().any(|part| !matches!(part, Component::Normal(_))) {
                    return Err((
                        format!("`{key}` is not the name of a file"),
                        "name a file of the folder".to_owned(),
                    ));
                }
                let bytes = self.file(&Path::new(path).join(key), allowed)?;
                std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| {
                    (format!("`{path}/{key}` is not text in UTF-8"), "write it in UTF-8".to_owned())
                })
            }
            Provider::Environment { allowed } => {
                let passes = allowed.as_ref().is_none_or(|list| list.matches(key).unwrap_or(false));
                if !passes {
                    let reason = format!("variable `{key}` is outside the provider's `allowlist.pattern`");
                    return Err((reason, "widen the pattern, or take another variable".to_owned()));
                }
                let missing = || (format!("environment variable `{key}` is not set"), "set it".to_owned());
                (self.surroundings.variable)(key).ok_or_else(missing)
            }
        }
    }

    fn properties(&mut self, path: &Path, allowed: &[PathBuf]) -> Result<Rc<Properties>, Trouble> {
        check_allowed(path, allowed)?;
        if let Some(known) = self.properties.get(path) {
            return known.clone();
        }
        let parsed = self.file(path, allowed).and_then(|bytes| {
            Properties::parse(&bytes).map(Rc::new).map_err(|_| {
                (
                    format!("`{}` is not a properties file", path.display()),
                    "mend its `\\u` escapes".to_owned(),
                )
            })
        });
        self.properties.insert(path.to_owned(), parsed.clone());
        parsed
    }

    fn file(&mut self, path: &Path, allowed: &[PathBuf]) -> Result<Rc<[u8]>, Trouble> {
        check_allowed(path, allowed)?;
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        if self.files_bytes > FILES_BYTES_MAX {
            let reason =
                format!("the files of config providers hold more than {FILES_BYTES_MAX} bytes in all");
            return Err((reason, "refer to fewer or shorter files".to_owned()));
        }
        let read = (self.surroundings.file)(path).map_err(|error| {
            (
                format!("`{}` cannot be read: {error}", path.display()),
                "make the file readable, or mend its path".to_owned(),
            )
        });
        self.files_bytes = self.files_bytes.saturating_add(read.as_ref().map_or(0, Vec::len));
        let read = read.map(Rc::from);
        self.files.insert(path.to_owned(), read.clone());
        read
    }
}

impl Provider {
    /// Whether a reference has the parts that this provider takes. Where Java leaves the text as it is, or does not start.
    fn check_shape(&self, Reference { provider, path, key }: Reference<'_>) -> Result<(), Trouble> {
        let (parts, example) = match self {
            Self::File { .. } => ("a file and a key in it", "/folder/file.properties:key"),
            Self::Directory { .. } => ("a folder and a file in it", "/folder:file"),
            Self::Environment { .. } => ("a variable and nothing else", "NAME"),
        };
        let has_path = !path.is_empty();
        if !key.is_empty() && has_path == !matches!(self, Self::Environment { .. }) {
            return Ok(());
        }
        let colon = if has_path { ":" } else { "" };
        let reason = format!("`${{{provider}:{path}{colon}{key}}}` does not name {parts}");
        Err((reason, format!("write `${{{provider}:{example}}}`")))
    }
}

fn check_allowed(path: &Path, allowed: &[PathBuf]) -> Result<(), Trouble> {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    if !allowed.is_empty() && (climbs || !allowed.iter().any(|allowed| path.starts_with(allowed))) {
        let reason = format!("`{}` is outside the provider's `allowed.paths`", path.display());
        return Err((reason, "widen them, or move the file".to_owned()));
    }
    Ok(())
}
