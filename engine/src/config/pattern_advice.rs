//! What to do about a regular expression that cannot be used: what Java means by it, and how that is written in the
//! form at hand.

use super::form::Form;

/// For a list of patterns: it is cut at every comma.
pub(super) fn of_list(value: &str, form: Form) -> String {
    if value.starts_with(['*', '+', '?']) {
        return "write `.*` for any characters: lists hold names and regular expressions".to_owned();
    }
    match value.contains('{') && value.contains(',') && !lost_backslash(value) {
        true => format!(
            "a list is cut at every comma, also inside `{{…}}`: write the pattern without one, and `\\\\{{` for the character \
             `{{` ({})",
            form.of_backslashes()
        ),
        false => format!("{}; lists are cut at commas", of_one(value, form)),
    }
}

/// For a single pattern.
pub(super) fn of_one(value: &str, form: Form) -> String {
    let written = form.of_backslashes();
    if lost_backslash(value) {
        format!("write `\\\\p{{…}}` for a class such as `\\p{{L}}`: {written}")
    } else if value.contains('{') {
        format!("write `\\\\{{` for the character `{{`: {written}")
    } else {
        format!("mend the pattern; {written}")
    }
}

/// For a pattern that can match no name: what stands in it that is in no name.
pub(super) fn of_dead(pattern: &str) -> Option<&'static str> {
    Some(if pattern.contains(';') {
        "items have commas between, not semicolons"
    } else if pattern.contains(char::is_whitespace) && !pattern.contains('#') {
        "items have commas between, not blanks"
    } else if pattern.starts_with('/') || pattern.starts_with('!') {
        "write the expression alone, without marks around it; what is to stay behind goes into `topics.exclude`"
    } else {
        return None;
    })
}

/// Whether `\p{L}` lost its backslash to the form.
fn lost_backslash(value: &str) -> bool {
    let begins = |(at, _): (usize, &str)| !value[..at].ends_with('\\');
    value.match_indices("p{").chain(value.match_indices("P{")).any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_can_be_written_as_it_stands() {
        for form in [Form::Properties, Form::Connector] {
            assert!(of_one("a{", form).starts_with(r"write `\\{` for the character `{`: in "), "{form:?}");
            assert!(of_one("p{L}+", form).starts_with(r"write `\\p{…}` for a class such as `\p{L}`: in "));
            assert!(of_list("[0-9]{1,6}", form).contains("cut at every comma"));
            assert!(
                of_list("*", form).starts_with("write `.*`")
                    && of_list("*.x", form).starts_with("write `.*`")
            );
            assert!(of_list("(", form).contains("a backslash is written twice; lists are cut at commas"));
        }
        assert!(of_one("(", Form::Connector).contains("in JSON"));
        assert!(of_one("(", Form::Properties).contains("in a properties file"));
    }
}
