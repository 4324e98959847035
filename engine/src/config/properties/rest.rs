//! Lines that are the rest of a secret above, such as a private key that was pasted over several lines: to the reader each
//! is a key of its own, and no message may show it.

use super::Entry;
use crate::config::secret;

/// Fewer letters in a row may be a name.
const ENCODED_CHARS_MIN: usize = 32;

/// Marks the entries whose keys may be the rest of a secret: by their looks, or since they stand behind one and are not
/// written as keys are. Known keys never are.
pub(super) fn mark(entries: &mut [Entry]) {
    let mut is_behind_secret = false;
    for entry in entries {
        let (key, value) = (&entry.key, &entry.value);
        let may_be = looks_encoded(key) || is_behind_secret && !is_written_as_key(key);
        entry.is_rest = may_be && !secret::is_known_below_names(key);
        is_behind_secret = entry.is_rest || secret::is_secret_key(key) || secret::is_hidden(key, value);
    }
}

/// A line of PEM or base64, or the end of a JAAS line.
fn looks_encoded(text: &str) -> bool {
    let is_base64 = || text.chars().all(|c| c.is_ascii_alphanumeric() || "+/_-".contains(c));
    let has = |of: fn(&char) -> bool| text.chars().any(|c| of(&c));
    let has_all =
        || has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase) && has(char::is_ascii_digit);
    text.starts_with("-----")
        || text.ends_with("\";")
        || text.ends_with("';")
        || text.len() >= ENCODED_CHARS_MIN && is_base64() && has_all()
}

/// Small letters in several words; names of clusters may have capitals.
fn is_written_as_key(text: &str) -> bool {
    let is_of_words = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    text.contains("->") || text.contains('.') && text.chars().all(is_of_words)
}

#[cfg(test)]
mod tests {
    use crate::config::{Inspection, Properties, Surroundings};

    fn rests(text: &str) -> Vec<usize> {
        let properties = Properties::parse(text.as_bytes()).unwrap();
        properties.entries().iter().filter(|entry| entry.is_rest).map(|entry| entry.line).collect()
    }

    const PEM: &str = "a.ssl.keystore.key = -----BEGIN PRIVATE KEY-----\n\
                       MIIEvS3CRETAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3S\n\
                       zjAb1kjS3CRETs=\nabc==\n-----END PRIVATE KEY-----\n";

    #[test]
    fn lines_of_a_pasted_key_are_known() {
        assert_eq!(rests(PEM), [2, 3, 4, 5]);
        assert_eq!(rests(&format!("{PEM}clusters = a, b\nfrobnicate = 1\n")), [2, 3, 4, 5]);
        let certificate = "a.note = x\n-----BEGIN CERTIFICATE-----\nMIIE\nabc\n-----END CERTIFICATE-----\n";
        assert_eq!(rests(certificate), [2, 3, 4, 5]);
        assert_eq!(rests("topics = a\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSk\n"), [2]);
    }

    #[test]
    fn what_stands_behind_a_password_without_looking_like_a_key_is_one() {
        assert_eq!(
            rests("a.sasl.jaas.config = PlainLoginModule required password=\"x \\ \n\"S3CRETbc\";\n"),
            [2]
        );
        assert_eq!(rests("a.ssl.key.password = \\ \nhunter2\n"), [2]);
        assert_eq!(rests("a.ssl.key.pasword = \neyJhbGci.eyJzdWIi.c2ln\n"), [2]);
        for named in ["clusters = a", "a->b.enabled = true", "a.frob.nicate = x", "A.topics = x"] {
            assert_eq!(rests(&format!("a.ssl.key.password = x\n{named}\n")), [0; 0], "{named}");
        }
        assert_eq!(rests("topics = a\nfrobnicate = 1\nFrobNicate = 2\n"), [0; 0]);
    }

    #[test]
    fn no_message_shows_them() {
        let text = format!(
            "clusters = a, b\na->b.enabled = true\na.bootstrap.servers = a:1\n{PEM}b.sasl.jaas.config = x \\ \n\
             \"S3CRETbc\";\nS3CRET = ${{S3CRET}}\nS3CRET = twice\n"
        );
        let inspection = Inspection::of_file(text.as_bytes(), Surroundings::process());
        let said = format!("{} {inspection:?} {:?}", inspection.result().unwrap_err(), inspection.warnings());
        let shown: Vec<String> = inspection.warnings().iter().map(ToString::to_string).collect();
        assert!(!said.contains("S3CRET") && !shown.join(" ").contains("S3CRET"), "{shown:#?}");
        assert!(
            shown.contains(
                &"line 5: `********`: read by nobody, and not shown: it may be the rest of `a.ssl.keystore.key` (line 4) (and \
                  3 more such keys): a value goes on in the next line only behind a `\\` at the very end of its line"
                    .to_owned()
            ),
            "{shown:#?}"
        );
    }
}
