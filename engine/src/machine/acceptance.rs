//! Which of a topic's settings the target takes: found out by refusals, so that one bad setting spoils no other.
//!
//! A broker takes all settings of a topic or none. So they go together; what the refusal names is left out, and the rest
//! goes again. Where it names none, dry runs (`validate_only`) tell: first without any setting, where the request can do
//! without (a topic that is refused even so is refused for another reason), then each setting alone.
//!
//! # References
//! KIP-4 and KIP-339 for `validate_only`. Managed clusters refuse by INVALID_CONFIG or POLICY_VIOLATION, not all of them
//! with a message.

use std::collections::VecDeque;

/// A setting of a topic as it shall be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// Its name, such as `retention.ms`.
    pub name: String,
    /// Its value; none for a setting that goes back to what the broker has by default.
    pub value: Option<String>,
}

/// What an answer led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The target took what is left of the settings.
    Accepted,
    /// There is more to ask.
    Again,
    /// It is refused for a reason that leaving out settings does not mend.
    Refused,
}

/// The settings of one topic on their way into the target.
#[derive(Debug, Clone)]
pub struct Acceptance {
    settings: Vec<Setting>,
    goes_without: bool,
    trial: Option<Trial>,
    left_out: VecDeque<(Setting, String)>,
}

/// Dry runs of each setting alone.
#[derive(Debug, Clone)]
struct Trial {
    /// The setting under trial; none while it is tried without any.
    next: Option<usize>,
    /// Places of settings that were refused, with what was said.
    bad: Vec<(usize, String)>,
}

impl Acceptance {
    /// `goes_without`: the request makes sense without any setting, as CreateTopics does.
    #[must_use]
    pub fn new(settings: Vec<Setting>, goes_without: bool) -> Self {
        Self { settings, goes_without, trial: None, left_out: VecDeque::new() }
    }

    /// What the next request says.
    #[must_use]
    pub fn asked(&self) -> &[Setting] {
        match &self.trial {
            None => &self.settings,
            Some(Trial { next: None, .. }) => &[],
            Some(Trial { next: Some(place), .. }) => self.settings.get(*place..=*place).unwrap_or_default(),
        }
    }

    /// Whether the target shall only say what it would do with it.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.trial.is_some()
    }

    /// The answer to what was [`asked`](Self::asked): taken, or refused with what the target says about it.
    pub fn handle_answer(&mut self, answer: Result<(), &str>) -> Progress {
        if self.trial.is_some() {
            return self.handle_trial(answer);
        }
        let Err(message) = answer else { return Progress::Accepted };
        if self.settings.is_empty() {
            return Progress::Refused;
        }
        let alone = (self.settings.len() == 1 && !self.goes_without).then_some(0);
        match named(&self.settings, message).or(alone) {
            Some(place) => {
                let setting = self.settings.remove(place);
                self.left_out.push_back((setting, message.to_owned()));
                self.go_on()
            }
            None => {
                let next = if self.goes_without { None } else { Some(0) };
                self.trial = Some(Trial { next, bad: Vec::new() });
                Progress::Again
            }
        }
    }

    fn handle_trial(&mut self, answer: Result<(), &str>) -> Progress {
        let Some(Trial { next, bad }) = &mut self.trial else { return Progress::Again };
        match (*next, answer) {
            (None, Err(_)) => return Progress::Refused,
            (None, Ok(())) => *next = Some(0),
            (Some(place), answer) => {
                bad.extend(answer.err().map(|message| (place, message.to_owned())));
                *next = Some(place + 1);
            }
        }
        if next.is_none_or(|next| next < self.settings.len()) {
            return Progress::Again;
        }
        let bad = std::mem::take(bad);
        self.trial = None;
        if bad.is_empty() {
            return Progress::Refused;
        }
        for (place, message) in bad.into_iter().rev() {
            self.left_out.push_front((self.settings.remove(place), message));
        }
        self.go_on()
    }

    fn go_on(&self) -> Progress {
        if self.settings.is_empty() && !self.goes_without { Progress::Accepted } else { Progress::Again }
    }

    /// The next setting that is left out, with what the target said about it.
    pub fn poll_left_out(&mut self) -> Option<(Setting, String)> {
        self.left_out.pop_front()
    }

    /// The settings that are not left out.
    #[must_use]
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }
}

/// The setting whose name stands first in a refusal.
fn named(settings: &[Setting], message: &str) -> Option<usize> {
    let places = settings.iter().enumerate().filter_map(|(index, setting)| {
        let at = message.match_indices(&setting.name).find(|(at, name)| stands_alone(message, *at, name))?.0;
        Some((at, index))
    });
    places.min().map(|(_, index)| index)
}

/// Whether what stands at `at` is no part of a longer name: `segment.ms` is not named by `segment.ms.max`, nor
/// `retention.ms` by `local.retention.ms`.
fn stands_alone(message: &str, at: usize, name: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let before = message[..at].chars().next_back();
    let mut after = message[at + name.len()..].chars();
    let goes_on = match after.next() {
        // A full stop ends a sentence, too.
        Some('.') => after.next().is_some_and(is_of_name),
        next => next.is_some_and(is_of_name),
    };
    !goes_on && !before.is_some_and(|before| before == '.' || is_of_name(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(names: &[&str]) -> Vec<Setting> {
        names.iter().map(|name| Setting { name: (*name).to_owned(), value: Some("1".to_owned()) }).collect()
    }

    fn names(settings: &[Setting]) -> Vec<&str> {
        settings.iter().map(|setting| setting.name.as_str()).collect()
    }

    /// Asks until there is an end. The target refuses what `refuses` gives a message for. Gives the end, what was left out,
    /// and the number of requests.
    fn ask(
        acceptance: &mut Acceptance,
        refuses: impl Fn(&[Setting]) -> Option<String>,
    ) -> (Progress, Vec<String>, usize) {
        let mut left_out = Vec::new();
        for requests in 1.. {
            let dry_run = acceptance.is_dry_run();
            let progress = match refuses(acceptance.asked()) {
                None => acceptance.handle_answer(Ok(())),
                Some(message) => acceptance.handle_answer(Err(&message)),
            };
            left_out.extend(std::iter::from_fn(|| acceptance.poll_left_out()).map(|(left, _)| left.name));
            if progress != Progress::Again {
                assert!(!dry_run || progress == Progress::Refused || acceptance.settings.is_empty());
                return (progress, left_out, requests);
            }
            assert!(requests < 200);
        }
        unreachable!()
    }

    /// Refuses these names, telling which or not.
    fn refusing(bad: &'static [&str], tells: bool) -> impl Fn(&[Setting]) -> Option<String> {
        move |settings| {
            let found = settings.iter().find(|setting| bad.contains(&setting.name.as_str()))?;
            Some(if tells { format!("Unknown topic config name: {}", found.name) } else { String::new() })
        }
    }

    #[test]
    fn what_the_target_takes_is_one_request() {
        for goes_without in [false, true] {
            let mut all = Acceptance::new(settings(&["a", "b"]), goes_without);
            assert_eq!(ask(&mut all, |_| None), (Progress::Accepted, vec![], 1));
        }
    }

    #[test]
    fn named_settings_are_left_out_one_after_the_other() {
        let mut creation = Acceptance::new(settings(&["a", "b", "c", "d"]), true);
        let (progress, left_out, requests) = ask(&mut creation, refusing(&["b", "d"], true));
        assert_eq!((progress, requests), (Progress::Accepted, 3));
        assert_eq!(left_out, ["b", "d"]);
        assert_eq!(names(creation.settings()), ["a", "c"]);
    }

    #[test]
    fn settings_that_nobody_names_are_found_by_dry_runs() {
        let mut creation = Acceptance::new(settings(&["a", "b", "c", "d"]), true);
        let (progress, left_out, requests) = ask(&mut creation, refusing(&["b", "d"], false));
        assert_eq!((progress, requests), (Progress::Accepted, 1 + 1 + 4 + 1));
        assert_eq!(left_out, ["b", "d"]);
        let mut alteration = Acceptance::new(settings(&["a", "b", "c"]), false);
        let (progress, left_out, requests) = ask(&mut alteration, refusing(&["a"], false));
        assert_eq!((progress, requests), (Progress::Accepted, 1 + 3 + 1));
        assert_eq!((left_out, names(alteration.settings())), (vec!["a".to_owned()], vec!["b", "c"]));
    }

    #[test]
    fn a_topic_that_is_refused_without_any_setting_loses_none() {
        let mut creation = Acceptance::new(settings(&["a", "b"]), true);
        let refuses = |_: &[Setting]| Some("the replication factor must be 3".to_owned());
        assert_eq!(ask(&mut creation, refuses), (Progress::Refused, vec![], 2));
        assert_eq!(names(creation.settings()), ["a", "b"]);
    }

    #[test]
    fn settings_that_are_refused_only_together_are_not_taken_apart() {
        let refuses = |settings: &[Setting]| (settings.len() == 2).then(String::new);
        let mut alteration = Acceptance::new(settings(&["a", "b"]), false);
        assert_eq!(ask(&mut alteration, refuses), (Progress::Refused, vec![], 3));
    }

    #[test]
    fn a_lone_setting_needs_no_name() {
        let mut alteration = Acceptance::new(settings(&["a"]), false);
        assert_eq!(
            ask(&mut alteration, |_| Some("no".into())),
            (Progress::Accepted, vec!["a".to_owned()], 1)
        );
        let mut creation = Acceptance::new(settings(&["a"]), true);
        assert_eq!(
            ask(&mut creation, refusing(&["a"], false)),
            (Progress::Accepted, vec!["a".to_owned()], 4)
        );
    }

    #[test]
    fn all_settings_may_be_refused() {
        let mut creation = Acceptance::new(settings(&["a", "b"]), true);
        assert_eq!(ask(&mut creation, refusing(&["a", "b"], true)).1, ["a", "b"]);
        assert!(creation.settings().is_empty());
        let mut alteration = Acceptance::new(settings(&["a", "b"]), false);
        assert_eq!(ask(&mut alteration, refusing(&["a", "b"], false)).1, ["a", "b"]);
    }

    #[test]
    fn the_name_that_stands_first_in_the_refusal_counts() {
        let all = settings(&["retention.ms", "local.retention.ms", "segment.ms", "segment.bytes", "segment"]);
        let named = |message: &str| named(&all, message).map(|place| all[place].name.as_str());
        assert_eq!(named("Unknown topic config name: segment.bytes"), Some("segment.bytes"));
        assert_eq!(named("Invalid value 1 for configuration segment: too small"), Some("segment"));
        assert_eq!(named("segment.ms."), Some("segment.ms"));
        assert_eq!(
            named("Invalid value 9 for configuration local.retention.ms: must be below retention.ms"),
            Some("local.retention.ms")
        );
        assert_eq!(named("Unknown topic config name: segment.bytes.max"), None);
        assert_eq!(named("my-segment, segment_x"), None);
        assert_eq!(named("größer als ä segment.ms für"), Some("segment.ms"));
        assert_eq!(named(""), None);
    }
}
