//! Keeps secrets out of every message: which keys hold one, and what is shown of a value.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;

use super::{keys, providers};

/// Shown in place of a secret.
pub(super) const MASK: &str = "********";

/// Shorter stretches of a secret may stand in a sentence by chance.
const SCRUBBED_CHARS_MIN: usize = 4;

/// Keys and values longer than this are cut in a line, in characters.
const SHOWN_CHARS_MAX: usize = 120;

/// Sentences longer than this lose their middle in a line, in characters: the reason stands at the end, most of the time.
const SENTENCE_CHARS_MAX: usize = 1000;

/// Parts of a key's name that mean "secret". Wide on purpose: a masked harmless value costs a look into the file, a
/// printed password costs a password.
const SECRET_PARTS: [&str; 9] =
    ["password", "passphrase", "secret", "jaas", "token", "credential", "private", "keystore.key", "api.key"];

/// Longer than any word that is like one of them, in bytes.
const MISSPELT_BYTES_MAX: usize = 20;

/// Words that mean it in short.
const SECRET_SHORT: [&str; 4] = ["pass", "passwd", "pwd", "pw"];

/// Last parts of a key's name that mean "secret" by themselves (`ssl.keystore.key`, `basic.auth.user.info`).
const SECRET_ENDS: [&str; 4] = [".key", "user.info", "certificate.chain", "truststore.certificates"];

/// Last parts of a key's name that say that it names something, and holds nothing: `ssl.truststore.location`.
const NAMING_ENDS: [&str; 5] = ["class", "classes", "file", "location", "type"];

/// Dots in names of clusters that are looked behind.
const NAMES_PARTS_MAX: usize = 16;

/// Keys of lists of names.
const LISTS: [&str; 6] =
    ["topics", "topics.exclude", "topics.blacklist", "groups", "groups.exclude", "groups.blacklist"];

/// What stands before a key's own name, inside a cluster or a flow.
const PREFIXES: [&str; 7] =
    ["source.", "target.", "cluster.", "consumer.", "producer.", "admin.", "override."];

/// Words that, in a value, give away that it holds a secret whatever its key (`password="…"` in a JAAS line that was
/// written under a misspelt key).
const SECRET_IN_VALUE: [&str; 9] = [
    "password",
    "secret",
    "token",
    "sharedaccesskey",
    "private key",
    "loginmodule",
    "apikey",
    "api_key",
    "access_key",
];

/// Text of a configuration that may be a secret: it can be read, and printed only by way of the key that it belongs to
/// ([`Entry::shown`](super::Entry::shown)).
///
/// ```compile_fail
/// let properties = twinlog_engine::config::Properties::parse(b"ssl.key.password=x").unwrap();
/// println!("{}", properties.find("ssl.key.password").unwrap().value);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Value(String);

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl Deref for Value {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Value {
    /// The text itself, for whoever reads it as a setting.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Whether the value of `key` must never be printed. Capital letters do not matter.
pub fn is_secret_key(key: &str) -> bool {
    let name = own_name(key).to_ascii_lowercase();
    !is_naming(&name)
        && (SECRET_PARTS.iter().any(|part| name.contains(part))
            || SECRET_ENDS.iter().any(|end| name.ends_with(end))
            || !is_known(&name) && name.split(['.', '_', '-']).any(sounds_secret))
}

/// Whether a word is one of those that mean "secret", but for a slip of the pen.
fn sounds_secret(word: &str) -> bool {
    let is_like = |part: &str| strsim::normalized_damerau_levenshtein(word, part) >= keys::ALIKE_MIN;
    SECRET_SHORT.contains(&word)
        || word.len() <= MISSPELT_BYTES_MAX && SECRET_PARTS.iter().any(|part| is_like(part))
}

/// Whether a message may not show the value of `key`: either of them smells of a secret.
pub(super) fn is_hidden(key: &str, value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    // `https://user:password@host`, and the same without a scheme.
    let has_login = lower.split_once('@').is_some_and(|(login, _)| login.contains(':'));
    // `https://host/path?key=…`.
    let has_query = lower.split_once('?').is_some_and(|(_, query)| query.contains('='));
    let has_word = || SECRET_IN_VALUE.iter().any(|word| lower.contains(word));
    !value.is_empty()
        && (is_secret_key(key) || has_login || has_query || has_word() && !is_of_names(key, value))
}

/// A key without the name that somebody gave to a cluster, flow or config provider, which may be called `secrets`: as far
/// as what is left is known to be a key.
fn own_name(key: &str) -> &str {
    if let Some((_, own)) = key.strip_prefix(providers::PREFIX).and_then(|named| named.split_once('.')) {
        return own;
    }
    match key.split_once('.') {
        Some((_, own)) if !is_known(key) && is_known(own) => own,
        _ => key,
    }
}

/// Whether `name` is in the tables of keys, below whatever prefixes of clients.
fn is_known(mut name: &str) -> bool {
    loop {
        if keys::is_defined(name) {
            return true;
        }
        match PREFIXES.into_iter().find_map(|prefix| name.strip_prefix(prefix)) {
            Some(shorter) => name = shorter,
            None => return false,
        }
    }
}

/// Whether a key is known below whatever names of clusters and flows stand before it.
pub(super) fn is_known_below_names(key: &str) -> bool {
    let below = key.match_indices('.').map(|(dot, _)| &key[dot + 1..]);
    std::iter::once(key).chain(below.take(NAMES_PARTS_MAX)).any(is_known)
}

fn is_naming(name: &str) -> bool {
    name.rsplit('.').next().is_some_and(|end| NAMING_ENDS.contains(&end))
}

/// Whether the value is a list of names, paths or patterns, under a key that takes such: a topic may be called `tokens`.
fn is_of_names(key: &str, value: &str) -> bool {
    let own = own_name(key);
    // A list of topics may hold blanks and notes by mistake, which have to be seen.
    let is_blank = |c: char| c.is_whitespace() && !LISTS.contains(&own);
    let is_name = |c: char| !is_blank(c) && !matches!(c, '=' | ';' | '@' | '"' | '\'');
    (is_known(own) || is_naming(own)) && value.split(',').all(|item| item.trim().chars().all(is_name))
}

/// What may be shown of the value of `key`: masked when it is hidden, else the whole value. [`in_a_line`] makes it fit.
pub(super) fn shown(key: &str, value: &str) -> String {
    if is_hidden(key, value) { MASK.to_owned() } else { value.to_owned() }
}

/// A key or value as a part of a line for people: shortened, and nothing in it that steers a terminal or cannot be seen.
#[must_use]
pub fn in_a_line(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", printable(&text[..end])),
        None => printable(text),
    }
}

/// A sentence as a part of a line for people. Where it quotes so much that nobody would read it, its middle goes.
pub(super) fn sentence_in_a_line(text: &str) -> String {
    let half = SENTENCE_CHARS_MAX / 2;
    let head = text.char_indices().nth(half);
    let tail = text.char_indices().rev().nth(half);
    match (head, tail) {
        (Some((head, _)), Some((tail, _))) if head < tail => {
            format!("{} … {}", printable(&text[..head]), printable(&text[tail..]))
        }
        _ => printable(text),
    }
}

/// Takes out of a sentence whatever it quotes of a secret: what stands in backticks or quotes and also in the secret, whole or
/// by four characters in a row. The sentence's own words stay, and so do names of keys.
pub(super) fn scrub(sentence: &str, secret: &str) -> String {
    if secret.is_empty() {
        return sentence.to_owned();
    }
    // A backtick inside a value would make words of quotes.
    if secret.contains('`') {
        return masked_between(sentence, &['`', '"'], secret);
    }
    let parts = sentence.split('`').enumerate().map(|(number, part)| {
        let is_quoted = number % 2 == 1;
        if is_quoted { masked(part, secret) } else { masked_between(part, &['"'], secret) }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Masks what stands between the first and the last of the marks.
fn masked_between(text: &str, marks: &[char], secret: &str) -> String {
    match (text.find(marks), text.rfind(marks)) {
        // Both marks take one byte.
        (Some(first), Some(last)) if first < last => {
            format!("{}{}{}", &text[..=first], masked(&text[first + 1..last], secret), &text[last..])
        }
        _ => text.to_owned(),
    }
}

fn masked(quoted: &str, secret: &str) -> String {
    let is_own_word = ["true", "false"].contains(&quoted) || is_known_below_names(quoted);
    if quoted.is_empty() || is_own_word || !(secret.contains(quoted) || have_stretch(quoted, secret)) {
        quoted.to_owned()
    } else {
        MASK.to_owned()
    }
}

/// Whether both hold the same stretch of characters, long enough to be no chance.
fn have_stretch(quoted: &str, secret: &str) -> bool {
    let [quoted, secret]: [Vec<char>; 2] = [quoted, secret].map(|text| text.chars().collect());
    let parts: HashSet<&[char]> = secret.windows(SCRUBBED_CHARS_MIN).collect();
    quoted.windows(SCRUBBED_CHARS_MIN).any(|part| parts.contains(part))
}

/// Whether a character steers a terminal, breaks a line, turns the direction of writing, has no width, or is a blank that
/// only looks like one.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Text that may go to a terminal or a line of a log: what [`is_unprintable`] is escaped.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut printed, c| {
        if is_unprintable(c) {
            printed.extend(c.escape_default());
        } else {
            printed.push(c);
        }
        printed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_keys_are_masked_in_every_scope() {
        for key in [
            "west.sasl.jaas.config",
            "ssl.keystore.password",
            "ssl.key.password",
            "east.ssl.keystore.key",
            "sasl.oauthbearer.client.credentials.client.secret",
            "west->east.source.admin.SASL.JAAS.CONFIG",
            "x.Token",
            "sasl.oauthbearer.assertion.private.key.passphrase",
        ] {
            assert_eq!(shown(key, "hunter2"), MASK, "{key}");
        }
    }

    #[test]
    fn a_misspelt_secret_is_one() {
        for key in [
            "a.ssl.key.pasword",
            "ssl.keystore.passwrod",
            "b.sasl.oauthbearer.client.secrt",
            "a.sasl.jaas.confg",
            "sasl.tokn",
            "a.ssl.key.passphrsae",
            "ssl.truststore.passwd",
            "x_pwd",
        ] {
            assert_eq!(shown(key, "hunter2"), MASK, "{key}");
        }
        for key in
            ["topics", "a.compression.tipe", "west.topcis", "buffer.memroy", "partition.asignor", "pat.h"]
        {
            assert_eq!(shown(key, "orders"), "orders", "{key}");
        }
    }

    #[test]
    fn what_only_sounds_like_a_secret_is_shown() {
        for (key, value) in [
            ("ssl.truststore.location", "/etc/secret/ca.jks"),
            ("west.ssl.keystore.location", "/run/secrets/token/keystore.p12"),
            ("west.consumer.ssl.truststore.location", "/etc/secret/ca.jks"),
            ("west.ssl.keystore.type", "PKCS12"),
            ("config.providers", "secretsManager, file"),
            ("config.providers.secretsManager.class", "com.acme.SecretsManagerConfigProvider"),
            ("config.providers.secretsManager.param.region", "eu-1"),
            ("sasl.login.callback.handler.class", "com.acme.TokenHandler"),
            ("sasl.oauthbearer.assertion.private.key.file", "/etc/key.pem"),
            ("transforms.password.type", "com.acme.Mask"),
            ("topics", "secret-orders, tokens.*"),
            ("a->b.topics.exclude", "secret.* # x, a b secret"),
            ("a->b.topics.exclude", "secrets\\\\..*|(token)+"),
            ("secrets.bootstrap.servers", "token-1:9092"),
            ("token->vault-token.topics", "orders"),
            ("secrets.producer.client.id", "password-team"),
            ("source.cluster.bootstrap.servers", "secret:9092"),
            ("a.bootstrap.servers", "${secretsManager:path:key}"),
        ] {
            assert_eq!(shown(key, value), value, "{key}");
        }
    }

    #[test]
    fn no_key_of_a_secret_is_shown_by_its_end_or_its_cluster() {
        for (key, value) in [
            ("ssl.truststore.password", "x"),
            ("a.ssl.key.password", "x"),
            ("ssl.keystore.key", "-----BEGIN"),
            ("a.consumer.ssl.keystore.certificate.chain", "MII"),
            ("b.ssl.truststore.certificates", "MII"),
            ("sasl.jaas.config", "x"),
            ("a->b.producer.override.sasl.jaas.config", "x"),
            ("x.secret", "x"),
            ("x.token", "x"),
            ("topics.token", "x"),
            ("token.unknown.key", "x"),
            ("sasl.oauthbearer.client.credentials.client.secret", "x"),
            ("value.converter.basic.auth.user.info", "user:x"),
            ("value.converter.schema.registry.basic.auth.user.info", "user:x"),
            ("config.providers.vault.param.token", "x"),
            ("config.providers.secrets.param.secret.key", "x"),
            ("config.providers.aws.param.api.key", "x"),
            ("password", "x"),
            ("class.password", "x"),
            ("ssl.truststore.location", "/x password=hunter2"),
            ("a.ssl.keystore.location", "https://user:hunter2@host/x"),
            ("a.bootstrap.servers", "user:hunter2@host:1"),
            ("a.bootstrap.servers", "h:9092?apikey=hunter2"),
            ("a.bootstrap.servers", "h:9092?k=hunter2"),
            ("ssl.keystore.type", "-----BEGIN PRIVATE KEY-----"),
            ("topics", "orders sasl.jaas.config=PlainLoginModule"),
            ("a.bootstrap.servers", "Endpoint=sb://x/;SharedAccessKey=abc"),
            ("a.ssl.key.pasword", "mysecret"),
            ("value.converter.x", "secret1"),
        ] {
            assert_eq!(shown(key, value), MASK, "{key}");
        }
    }

    #[test]
    fn every_key_that_kafka_masks_is_masked() {
        let scopes = [keys::Scope::Connector, keys::Scope::Process, keys::Scope::Worker];
        let scopes = scopes.into_iter().chain(keys::Role::ALL.map(keys::Scope::Client));
        for (scope, name) in scopes.flat_map(|scope| keys::names(scope).map(move |name| (scope, name))) {
            let is_password = keys::definition(scope, name).is_some_and(|it| it.kind == keys::Kind::Password);
            assert!(!is_password || is_secret_key(name), "{name}");
        }
    }

    #[test]
    fn a_password_under_a_harmless_key_is_masked_too() {
        assert_eq!(shown("west.saslconfig", "PlainLoginModule required password=\"x\";"), MASK);
    }

    #[test]
    fn what_a_sentence_quotes_of_a_secret_is_taken_out() {
        let value = "h1:9092,a.ssl.key.password=hunter2";
        assert_eq!(
            scrub("\"a.ssl.key.password=hunter2\" has no port", value),
            format!("\"{MASK}\" has no port")
        );
        assert_eq!(scrub("`hunt` and `pw`", "hunter2"), format!("`{MASK}` and `pw`"));
        assert_eq!(scrub("`pw` is bad", "pw"), format!("`{MASK}` is bad"));
        assert_eq!(scrub("is bad", ""), "is bad");
        assert_eq!(scrub("`a`b` is bad", "a`b"), format!("`{MASK}` is bad"));
        assert_eq!(scrub("\"x\"y\" is bad", "x\"y"), format!("\"{MASK}\" is bad"));
        assert!(is_hidden("b.bootstrap.servers", "SASL_SSL://user:hunter2@h:9092"));
        assert!(!is_hidden("b.bootstrap.servers", "SSL://h:9092"));
    }

    #[test]
    fn the_words_of_a_sentence_stay_whatever_the_secret_is() {
        for secret in [
            "e",
            "built yet",
            "not",
            "is PLAINTEXT",
            "org.apache.kafka.common.security.plain.PlainLoginModule",
        ] {
            let sentence = "TLS and SASL are not built yet: `security.protocol` is PLAINTEXT, neither `true` nor `false`";
            assert_eq!(scrub(sentence, secret), sentence, "{secret}");
        }
    }

    #[test]
    fn nothing_that_steers_a_terminal_or_cannot_be_seen_is_printed() {
        assert_eq!(printable("a\u{1b}[2J\nb\u{202e}c\u{9b}é"), "a\\u{1b}[2J\\nb\\u{202e}c\\u{9b}é");
        for hidden in
            "\u{200b}\u{200d}\u{feff}\u{2060}\u{ad}\u{2028}\u{2029}\u{a0}\u{3000}\u{61c}\u{e0041}\u{85}"
                .chars()
        {
            assert_eq!(printable(&hidden.to_string()), hidden.escape_default().to_string());
        }
        assert_eq!(printable("größe 日本 \\ \""), "größe 日本 \\ \"");
    }

    #[test]
    fn a_sentence_that_quotes_too_much_keeps_both_ends() {
        let long = format!("begins {} ends", "é\n".repeat(1_000_000));
        let told = sentence_in_a_line(&long);
        assert!(
            told.starts_with("begins é\\n") && told.ends_with("é\\n ends") && told.contains(" … "),
            "{told}"
        );
        assert!(told.chars().count() < 2 * SENTENCE_CHARS_MAX);
        let short = "é".repeat(SENTENCE_CHARS_MAX);
        assert_eq!(sentence_in_a_line(&short), short);
    }

    #[test]
    fn ordinary_values_are_shown() {
        assert_eq!(shown("topics", "orders, pay.*"), "orders, pay.*");
        assert_eq!(shown("key.converter", "Foo"), "Foo");
        assert_eq!(shown("ssl.keystore.password", ""), "");
    }

    #[test]
    fn long_values_are_cut_and_control_characters_are_escaped() {
        assert_eq!(in_a_line("a\rb\n"), "a\\rb\\n");
        let long = "é".repeat(500);
        assert_eq!(shown("topics", &long), long);
        let cut = in_a_line(&long);
        assert_eq!(cut.chars().count(), SHOWN_CHARS_MAX + 1);
        assert!(cut.ends_with('…'));
    }
}
