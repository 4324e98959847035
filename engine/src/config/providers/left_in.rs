//! Placeholders of templates that nobody filled in: `${NAME}`, `{{ name }}`, `$NAME`, `%NAME%`, `@NAME@`, `<name>`.

use crate::config::properties::Entry;
use crate::config::resolve::split_list;
use crate::config::secret;

/// Whether one stands in the text as typed: a value that a provider gave is taken as it is. A secret may hold nearly anything,
/// so in it only `${…}` counts. The marks of single names count where nothing else is listed: MM2 runs with the rest of a list.
pub(super) fn is_left_in(entry: &Entry) -> bool {
    let typed = entry.typed();
    holds(typed, "${", "}", |name| name.split_once(':').is_none_or(|(_, rest)| is_of_a_shell(rest)))
        || !secret::is_secret_key(&entry.key)
            && (holds(typed, "{{", "}}", |_| true)
                || holds(typed, "<%", "%>", |_| true)
                || is_nothing_else(typed))
}

/// What a shell writes behind the colon where a variable is not set: `${NAME:-default}`.
pub(super) fn is_of_a_shell(behind_colon: &str) -> bool {
    behind_colon.starts_with(['-', '=', '?', '+'])
}

fn holds(text: &str, begin: &str, end: &str, is_name: impl Fn(&str) -> bool) -> bool {
    let inside = text.split(begin).skip(1).filter_map(|rest| rest.split_once(end));
    inside.into_iter().any(|(inside, _)| is_name(inside))
}

fn is_nothing_else(list: &str) -> bool {
    split_list(list).next().is_some() && split_list(list).all(is_whole)
}

/// An item that is nothing but a placeholder, but for a port.
fn is_whole(item: &str) -> bool {
    let item = item.split_once(':').map_or(item, |(host, _)| host);
    let is_variable = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let between = |begin, end| item.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    let is_words =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c));
    item.strip_prefix('$').is_some_and(is_variable)
        || between('%', '%').is_some_and(is_variable)
        || item.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')).is_some_and(is_variable)
        || item.strip_prefix("__").and_then(|rest| rest.strip_suffix("__")).is_some_and(is_variable)
        || between('@', '@').is_some_and(is_variable)
        || between('<', '>').is_some_and(is_words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Properties;

    fn is_told(key: &str, value: &str) -> bool {
        is_left_in(Properties::parse(format!("{key}={value}").as_bytes()).unwrap().find(key).unwrap())
    }

    #[test]
    fn templates_are_known_by_their_marks() {
        for value in [
            "${TOPICS}",
            "orders, ${TOPICS:-x} ${A}",
            "{{ topics }}",
            "a, {{topics}}.x",
            "$TOPICS",
            "$A, $B",
            "%TOPICS%",
            "@TOPICS@",
            "<topics>",
            "<your topics here>",
            "${ENABLED:-true}",
            "<%= topics %>",
            "$(TOPICS)",
            "__TOPICS__",
        ] {
            assert!(is_told("topics", value), "{value}");
        }
        assert!(
            is_told("a.bootstrap.servers", "$EAST:9092") && is_told("a.bootstrap.servers", "{{ east }}:9092")
        );
        for value in [
            "orders$",
            "a{2}{3}",
            "$",
            "^$",
            "____",
            "__consumer_offsets",
            "(?<name>x)",
            "a, $B",
            "${file:/x:y}",
            "a$B",
            "<>",
            "orders.*",
            "%",
        ] {
            assert!(!is_told("topics", value), "{value}");
        }
    }

    #[test]
    fn a_password_may_look_like_one() {
        for value in ["$ECRET", "{{x}}", "<x>", "%A%"] {
            assert!(!is_told("a.ssl.key.password", value), "{value}");
        }
        assert!(is_told("a.ssl.key.password", "${PASSWORD}"));
    }
}
