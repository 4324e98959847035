//! Names in `topics` that their flow never copies: excluded, internal, or on their way back to the target.
//!
//! Only where a list spells names: what a regular expression matches is not known before the source tells its topics.

use super::error::Fault;
use super::patterns;
use super::properties::Entry;
use super::resolve::Resolver;
use crate::policy::{Names, Selection, TopicSelection, is_of_topic_names};

/// Names of one list that are looked at; of a longer one nothing is said of the whole.
const NAMES_MAX: usize = 1000;

/// An item of `topics` that names what is not copied.
struct LeftOut<'s> {
    pattern: &'s str,
    why: String,
    /// Whether nothing else matches the item: a `.` in it matches any character.
    is_all: bool,
}

/// Warns of names that are not copied, and refuses a list that asks for nothing else.
pub(super) fn check(resolver: &mut Resolver<'_>, selection: &TopicSelection, target: &str) {
    let excluding = patterns::topics_exclude(resolver);
    let Some(entry) = resolver.find("topics") else {
        let exclude = selection.filter().exclude();
        if let Some(entry) = excluding.filter(|_| exclude.iter().any(|pattern| pattern == ".*")) {
            resolver.warn(entry, "excludes every topic: nothing is copied but heartbeats");
        }
        return;
    };
    let include = selection.filter().include();
    let mut left_out = Vec::new();
    for pattern in include.iter().take(NAMES_MAX) {
        match fate(resolver, selection, pattern, (excluding, target)) {
            Ok(found) => left_out.extend(found),
            // It takes too many steps to say, and would for the next one.
            Err(TooManySteps) => break,
        }
    }
    if left_out.is_empty() {
        return;
    }
    let dead = selection.filter().include_matching_nothing(Names::OfTopics).count();
    let sentences = sentences(&left_out);
    let nothing_else = left_out.len() + dead == include.len();
    if nothing_else && left_out.iter().all(|item| item.is_all) {
        let reason = format!("{}, so nothing would be copied", sentences.join("; "));
        let remedy = match excluding {
            Some(entry) => format!("name topics that are copied, or mend `{}`", entry.key),
            None => "name topics that are copied".to_owned(),
        };
        resolver.fault(Fault::of(entry, reason).remedy(remedy));
    } else {
        let more = if nothing_else { ", and no other topic is named" } else { "" };
        sentences.iter().for_each(|sentence| resolver.warn(entry, format!("{sentence}{more}")));
    }
}

/// A name could not be tried to its end.
struct TooManySteps;

fn fate<'s>(
    resolver: &Resolver<'_>,
    selection: &TopicSelection,
    pattern: &'s str,
    (excluding, target): (Option<&Entry>, &str),
) -> Result<Option<LeftOut<'s>>, TooManySteps> {
    let Some(name) = spelt(pattern, '.') else {
        // What the same pattern excludes, whatever it matches.
        let same = selection.filter().exclude().iter().find(|other| *other == pattern || *other == ".*");
        let why = same.map(|same| excluded_by(resolver, excluding, Some(same)));
        return Ok(why.map(|why| LeftOut { pattern, why, is_all: true }));
    };
    let why = match selection.select(&name) {
        Selection::Mirrored | Selection::NotIncluded => return Ok(None),
        Selection::Undecided(_) => return Err(TooManySteps),
        Selection::Internal => "internal to Kafka or MM2".to_owned(),
        Selection::Cycle => format!("named as what came from `{target}`, to which nothing is sent back"),
        Selection::Excluded => {
            let mut patterns = selection.filter().exclude().iter();
            let matching = patterns.find(|pattern| resolver.compiled().matches(pattern, &name));
            excluded_by(resolver, excluding, matching)
        }
    };
    let is_left_out = |name: &str| !matches!(selection.select(name), Selection::Mirrored);
    let mut letters = ('\0'..='\x7f').filter(|letter| is_of_topic_names(*letter));
    let is_all = letters.all(|any| spelt(pattern, any).is_none_or(|name| is_left_out(&name)));
    Ok(Some(LeftOut { pattern, why, is_all }))
}

fn excluded_by(resolver: &Resolver<'_>, excluding: Option<&Entry>, pattern: Option<&String>) -> String {
    let pattern = pattern.map(|pattern| match excluding {
        Some(entry) => format!("{} of ", entry.without_secrets(&format!("`{pattern}`"))),
        None => format!("`{pattern}` of "),
    });
    let pattern = pattern.unwrap_or_default();
    match excluding {
        Some(entry) => {
            let place = resolver.form().listed([(entry.key.as_str(), entry.line)].into_iter());
            format!("matched by {pattern}{place}")
        }
        None => format!("matched by {pattern}`topics.exclude`, by default"),
    }
}

/// One sentence for all items that have the same reason.
fn sentences(left_out: &[LeftOut<'_>]) -> Vec<String> {
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for LeftOut { pattern, why, .. } in left_out {
        let name = format!("`{pattern}`");
        match by_reason.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) => names.push(name),
            None => by_reason.push((why, vec![name])),
        }
    }
    let sentence = |(why, names): (&str, Vec<String>)| {
        let are = if names.len() == 1 { "is" } else { "are" };
        format!("{} {are} never copied: {why}", names.join(", "))
    };
    by_reason.into_iter().map(sentence).collect()
}

/// The name that a pattern spells, with `any` where an unescaped `.` stands; none where it is no name.
fn spelt(pattern: &str, any: char) -> Option<String> {
    let pattern = pattern.strip_prefix('^').unwrap_or(pattern);
    let pattern = pattern.strip_suffix('$').unwrap_or(pattern);
    let mut name = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        name.push(match c {
            '.' => any,
            '\\' => chars.next().filter(|escaped| "._-".contains(*escaped))?,
            c if is_of_topic_names(c) => c,
            _ => return None,
        });
    }
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use crate::config::{Inspection, MirrorConfig, Surroundings};

    const BASE: &str = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n";
    const IDENTITY: &str =
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n";

    fn read(more: &str) -> Result<Vec<String>, String> {
        match MirrorConfig::from_properties(format!("{BASE}{more}").as_bytes()) {
            Ok(config) => Ok(config.warnings().iter().map(ToString::to_string).collect()),
            Err(errors) => Err(errors.to_string()),
        }
    }

    #[test]
    fn a_list_that_asks_only_for_what_is_never_copied_is_refused() {
        let mend = "name topics that are copied, or mend `topics.exclude`";
        for (text, sentence, remedy) in [
            (
                "topics=orders\ntopics.exclude=orders",
                "`orders` is never copied: matched by `orders` of `topics.exclude` (line 6)",
                mend,
            ),
            (
                "topics=orders, pay\ntopics.exclude=x, o.*, p.*",
                "`orders` is never copied: matched by `o.*` of `topics.exclude` (line 6); `pay` is never copied: matched by \
                 `p.*` of `topics.exclude` (line 6)",
                mend,
            ),
            (
                "topics=orders, pay\ntopics.blacklist=.*",
                "`orders`, `pay` are never copied: matched by `.*` of `topics.blacklist` (line 6)",
                "name topics that are copied, or mend `topics.blacklist`",
            ),
            (
                "topics=my.orders\ntopics.exclude=my.orders",
                "`my.orders` is never copied: matched by `my.orders` of `topics.exclude` (line 6)",
                mend,
            ),
            (
                "topics=pay.*\ntopics.exclude=x, pay.*",
                "`pay.*` is never copied: matched by `pay.*` of `topics.exclude` (line 6)",
                mend,
            ),
            (
                "topics=orders, $X\ntopics.exclude=orders",
                "`orders` is never copied: matched by `orders` of `topics.exclude` (line 6)",
                mend,
            ),
            (
                "topics=__consumer_offsets, ^__x$\ntopics.exclude=",
                "`__consumer_offsets`, `^__x$` are never copied: internal to Kafka or MM2",
                mend,
            ),
            (
                "topics=__consumer_offsets",
                "`__consumer_offsets` is never copied: internal to Kafka or MM2",
                "name topics that are copied",
            ),
            (
                "topics=B\\\\.orders",
                "`B\\.orders` is never copied: named as what came from `B`, to which nothing is sent back",
                "name topics that are copied",
            ),
        ] {
            let error = read(text).unwrap_err();
            let (line, _) = text.split_once('\n').unwrap_or((text, ""));
            let line = line.replacen('=', " = ", 1).replace("\\\\", "\\");
            assert_eq!(error, format!("line 5: `{line}`: {sentence}, so nothing would be copied; {remedy}"));
        }
    }

    #[test]
    fn names_that_are_never_copied_beside_others_are_told() {
        for (text, sentence) in [
            (
                "topics=orders, pay\ntopics.exclude=orders",
                "`orders` is never copied: matched by `orders` of `topics.exclude` (line 6)",
            ),
            (
                "topics=.*, __transaction_state",
                "`__transaction_state` is never copied: internal to Kafka or MM2",
            ),
            (
                "topics=x\\\\.replica, y",
                "`x\\.replica` is never copied: matched by `.*\\.replica` of `topics.exclude`, by default",
            ),
            // A dot matches any character, so that another topic may be copied.
            (
                "topics=B.orders",
                "`B.orders` is never copied: named as what came from `B`, to which nothing is sent back, and no other \
                 topic is named",
            ),
            (
                "topics=my.orders\ntopics.exclude=my\\\\.orders",
                "`my.orders` is never copied: matched by `my\\.orders` of `topics.exclude` (line 6), and no other topic \
                 is named",
            ),
        ] {
            assert_eq!(read(text), Ok(vec![format!("line 5: `topics`: {sentence}")]), "{text}");
        }
        let told = "line 5: `topics.exclude`: excludes every topic: nothing is copied but heartbeats";
        assert_eq!(read("topics.exclude = a, .*"), Ok(vec![told.to_owned()]));
    }

    #[test]
    fn what_a_provider_gave_for_the_other_list_is_not_shown() {
        let text = "config.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\ntopics=orders\n\
                    topics.exclude=${env:EXCLUDED}";
        let surroundings = Surroundings {
            file: &|_| Err(std::io::ErrorKind::NotFound.into()),
            variable: &|_| Some("ord.*".to_owned()),
        };
        let inspection = Inspection::of_file(format!("{BASE}{text}").as_bytes(), surroundings);
        let error = inspection.result().unwrap_err().to_string();
        let sentence = "`orders` is never copied: matched by `********` of `topics.exclude` (line 8)";
        assert!(error.contains(sentence), "{error}");
    }

    #[test]
    fn what_may_be_copied_is_not_told() {
        for text in [
            "topics=orders\ntopics.exclude=orders-.*",
            "topics=orders.*\ntopics.exclude=orders",
            "topics=heartbeats\ntopics.exclude=heartbeats",
            "topics=A.orders, Border",
            &format!("{IDENTITY}topics=B.orders"),
            "topics=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, b\ntopics.exclude=(?:(?=a)a|a(?=a))*c",
        ] {
            assert_eq!(read(text), Ok(Vec::new()), "{text}");
        }
    }
}
