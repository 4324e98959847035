//! Rules one by one; then random changes on both sides, crashes and two instances against a naive cluster.

use proptest::prelude::*;

use super::*;
use crate::policy::{ConfigSource, DEFAULT_EXCLUDED_CONFIGS, TopicConfigEntry, TopicConfigFilter};

const TOPIC: &str = "west.orders";

type Values = BTreeMap<String, String>;

fn values(pairs: &[(&str, &str)]) -> Values {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn remembered(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A source with these values; it has nothing to copy for the other names.
fn source(copied: &[(&str, &str)], unset: &[&str]) -> SourceConfigs {
    SourceConfigs { copied: values(copied), unset: unset.iter().map(|name| (*name).to_owned()).collect() }
}

fn set(name: &str, value: &str) -> Setting {
    Setting { name: name.to_owned(), value: Some(value.to_owned()) }
}

fn unset(name: &str) -> Setting {
    Setting { name: name.to_owned(), value: None }
}

fn plan(source: &SourceConfigs, mirror: &[(&str, &str)], stored: &[(&str, &str)]) -> Plan {
    ConfigSync::default().plan(TOPIC, source, &values(mirror), &remembered(stored))
}

#[test]
fn what_the_source_has_is_put_on_the_mirror_and_remembered_first() {
    let source = source(&[("retention.ms", "1000"), ("segment.ms", "5")], &["flush.ms"]);
    let plan = plan(&source, &[("segment.ms", "5"), ("flush.ms", "9")], &[]);
    assert_eq!(plan.settings, [set("retention.ms", "1000")]);
    assert_eq!(plan.remembered, remembered(&[("retention.ms", "1000")]));
    assert!(!plan.is_stored);
}

#[test]
fn a_value_changed_by_hand_goes_back_to_the_source_s() {
    let plan = plan(
        &source(&[("retention.ms", "1000")], &[]),
        &[("retention.ms", "7")],
        &[("retention.ms", "1000")],
    );
    assert_eq!(plan.settings, [set("retention.ms", "1000")]);
    assert!(plan.is_stored, "nothing new is to be remembered");
}

#[test]
fn what_twinlog_put_there_goes_when_the_source_drops_it() {
    let stored = [("retention.ms", "1000")];
    let dropped = source(&[], &["retention.ms"]);
    let plan = plan(&dropped, &stored, &stored);
    assert_eq!(plan.settings, [unset("retention.ms")]);
    assert!(plan.is_stored);
    let left = ConfigSync::default().handle_applied(TOPIC, &plan.settings, &plan.remembered);
    assert_eq!(left, Some(Settings::new()));
    assert_eq!(self::plan(&dropped, &[], &[]), Plan { is_stored: true, ..Plan::default() });
}

#[test]
fn what_others_put_there_stays() {
    let dropped = source(&[], &["retention.ms", "segment.ms"]);
    // Never ours; ours, but changed by somebody since.
    let plan = plan(&dropped, &[("retention.ms", "7"), ("segment.ms", "9")], &[("segment.ms", "5")]);
    assert_eq!(plan.settings, []);
    assert_eq!((plan.remembered, plan.is_stored), (Settings::new(), false), "what is not there is forgotten");
}

#[test]
fn the_same_value_set_by_somebody_after_ours_was_taken_away_is_his() {
    let mut sync = ConfigSync::default();
    let (stored, dropped) = (remembered(&[("retention.ms", "1000")]), source(&[], &["retention.ms"]));
    let mirror = values(&[("retention.ms", "1000")]);
    let first = sync.plan(TOPIC, &dropped, &mirror, &stored);
    sync.handle_sent(TOPIC, &first.settings);
    let stored = sync.handle_applied(TOPIC, &first.settings, &first.remembered).unwrap();
    assert_eq!(sync.plan(TOPIC, &dropped, &mirror, &stored), Plan { is_stored: true, ..Plan::default() });
}

#[test]
fn a_source_that_says_nothing_changes_nothing() {
    let stored = [("retention.ms", "1000"), ("min.insync.replicas", "2")];
    let plan = plan(&source(&[], &[]), &stored, &stored);
    assert_eq!((plan.settings, plan.is_stored), (vec![], true), "and what was put there is still remembered");
}

#[test]
fn while_one_value_replaces_another_both_are_ours() {
    let mut sync = ConfigSync::default();
    let stored = remembered(&[("retention.ms", "1000")]);
    let changed = source(&[("retention.ms", "2000")], &[]);
    let first = sync.plan(TOPIC, &changed, &values(&[("retention.ms", "1000")]), &stored);
    assert_eq!(first.remembered, remembered(&[("retention.ms", "1000"), ("retention.ms", "2000")]));
    // A crash before it was sent, and the source drops it: the old value is still known to be ours.
    let plan = plan(
        &source(&[], &["retention.ms"]),
        &[("retention.ms", "1000")],
        &[("retention.ms", "1000"), ("retention.ms", "2000")],
    );
    assert_eq!(plan.settings, [unset("retention.ms")]);
}

#[test]
fn what_was_refused_is_sent_again_only_with_another_value() {
    let mut sync = ConfigSync::default();
    let (mirror, stored) = (Values::new(), Settings::new());
    let mut settings =
        |value| sync.plan(TOPIC, &source(&[("retention.ms", value)], &[]), &mirror, &stored).settings;
    assert_eq!(settings("1"), [set("retention.ms", "1")]);
    sync.handle_refused(TOPIC, &set("retention.ms", "1"));
    let mut settings =
        |value| sync.plan(TOPIC, &source(&[("retention.ms", value)], &[]), &mirror, &stored).settings;
    assert_eq!(settings("1"), []);
    assert_eq!(settings("2"), [set("retention.ms", "2")]);
    assert_eq!(settings("1"), [set("retention.ms", "1")], "it was another one in between");
    sync.handle_refused(TOPIC, &set("retention.ms", "1"));
    sync.handle_listed(&BTreeSet::new(), &BTreeSet::new());
    let plan = sync.plan(TOPIC, &source(&[("retention.ms", "1")], &[]), &mirror, &stored);
    assert_eq!(plan.settings.len(), 1, "another topic of that name");
}

#[test]
fn what_was_refused_at_creation_is_not_sent_after_it_whenever_the_topic_is_listed() {
    let mut sync = ConfigSync::default();
    let (unlisted, listed) = (BTreeSet::new(), BTreeSet::from([TOPIC]));
    let refused = BTreeSet::from([(TOPIC.to_owned(), set("retention.ms", "1"))]);
    let settings = |sync: &mut ConfigSync, value: &str| {
        sync.plan(TOPIC, &source(&[("retention.ms", value)], &[]), &values(&[]), &remembered(&[])).settings
    };
    sync.handle_listed(&unlisted, &refused);
    sync.handle_listed(&unlisted, &refused);
    sync.handle_listed(&listed, &refused);
    assert_eq!(settings(&mut sync, "1"), []);
    // A list without what was refused earlier changes nothing.
    sync.handle_listed(&listed, &BTreeSet::new());
    assert_eq!(settings(&mut sync, "1"), []);
    // Another value, and then the first one again, which the target may take by now.
    assert_eq!(settings(&mut sync, "2"), [set("retention.ms", "2")]);
    sync.handle_listed(&listed, &refused);
    assert_eq!(settings(&mut sync, "1"), [set("retention.ms", "1")]);
    // The topic is deleted and made again.
    sync.handle_listed(&unlisted, &refused);
    sync.handle_listed(&listed, &refused);
    assert_eq!(settings(&mut sync, "1"), []);
}

#[test]
fn a_refused_removal_is_not_tried_for_ever() {
    let mut sync = ConfigSync::default();
    let stored = remembered(&[("retention.ms", "1")]);
    let (dropped, mirror) = (source(&[], &["retention.ms"]), values(&[("retention.ms", "1")]));
    let plan = sync.plan(TOPIC, &dropped, &mirror, &stored);
    sync.handle_refused(TOPIC, &plan.settings[0]);
    assert_eq!(sync.plan(TOPIC, &dropped, &mirror, &stored).settings, []);
}

#[test]
fn what_another_instance_left_out_is_stored_again() {
    let mut sync = ConfigSync::default();
    let asked = source(&[("retention.ms", "1")], &[]);
    let first = sync.plan(TOPIC, &asked, &Values::new(), &Settings::new());
    sync.handle_sent(TOPIC, &first.settings);
    let plan = sync.plan(TOPIC, &asked, &values(&[("retention.ms", "1")]), &Settings::new());
    assert_eq!((plan.settings, plan.is_stored), (vec![], false));
    assert_eq!(plan.remembered, remembered(&[("retention.ms", "1")]));
}

#[test]
fn the_mirror_is_asked_only_for_what_matters() {
    let mut sync = ConfigSync::default();
    let stored = remembered(&[("segment.ms", "1")]);
    sync.handle_sent(TOPIC, &[set("flush.ms", "1"), unset("segment.ms")]);
    let names = sync.names(TOPIC, &source(&[("retention.ms", "1")], &["cleanup.policy"]), &stored);
    assert_eq!(names, ["flush.ms", "retention.ms", "segment.ms"].map(str::to_owned).into());
    assert!(sync.names("other", &source(&[], &["cleanup.policy"]), &Settings::new()).is_empty());
}

#[test]
fn more_than_an_entry_holds_is_set_and_not_remembered() {
    let long = "x".repeat(REMEMBERED_BYTES_MAX / 4);
    let copied: Vec<(String, String)> =
        (0..6).map(|number| (format!("config.{number}"), long.clone())).collect();
    let source = SourceConfigs { copied: copied.iter().cloned().collect(), ..SourceConfigs::default() };
    let plan = ConfigSync::default().plan(TOPIC, &source, &Values::new(), &Settings::new());
    assert_eq!((plan.settings.len(), plan.remembered.len()), (6, 3));
    let again = ConfigSync::default().plan(TOPIC, &source, &source.copied, &plan.remembered);
    assert!(again.settings.is_empty() && again.is_stored, "and that is no news each time");
    assert_eq!(remembered_of(&plan.settings), plan.remembered);
}

// From here on: a naive source topic and its mirror.

const NAMES: [&str; 4] = ["cleanup.policy", "retention.ms", "segment.ms", "min.insync.replicas"];
/// The last of the names.
const EXCLUDED: &str = "min.insync.replicas";
/// The target takes no such value.
const NOT_TAKEN: &str = "source-3";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    Twinlog,
    Somebody,
}

#[derive(Debug, Clone)]
enum Action {
    /// Somebody sets a value at the source, or (none) removes it; `in_file`: then a broker's file has one.
    Source {
        name: usize,
        value: Option<u8>,
        in_file: bool,
    },
    /// Somebody sets or removes a value at the mirror.
    Mirror {
        name: usize,
        value: Option<u8>,
    },
    Step {
        instance: usize,
    },
    Crash {
        instance: usize,
    },
}

fn actions(instances: usize, crashes: bool) -> impl Strategy<Value = Vec<Action>> {
    let (name, value) = (0..NAMES.len(), prop::option::of(0..4u8));
    let action = prop_oneof![
        3 => (name.clone(), value.clone(), any::<bool>())
            .prop_map(|(name, value, in_file)| Action::Source { name, value, in_file }),
        2 => (name, value).prop_map(|(name, value)| Action::Mirror { name, value }),
        12 => (0..instances).prop_map(|instance| Action::Step { instance }),
        u32::from(crashes) => (0..instances).prop_map(|instance| Action::Crash { instance }),
    ];
    prop::collection::vec(action, 0..120)
}

#[derive(Debug, Clone)]
struct World {
    source: BTreeMap<&'static str, (String, ConfigSource)>,
    mirror: BTreeMap<String, (String, Author)>,
    /// The last entry in the log.
    stored: Settings,
    filter: TopicConfigFilter,
}

/// Where an instance stands in its look at the topic.
#[derive(Debug)]
enum Stage {
    Begin,
    Asked { source: SourceConfigs, stored: Settings },
    Planned { plan: Plan },
    Stored { plan: Plan },
    Applied { left: Option<Settings> },
}

struct Instance {
    sync: ConfigSync,
    stage: Stage,
    /// The last entry in the log as far as this instance has read it.
    view: Settings,
}

impl Instance {
    fn new() -> Self {
        Self { sync: ConfigSync::default(), stage: Stage::Begin, view: Settings::new() }
    }

    /// One request or answer on. Tells whether anything was sent or stored.
    fn step(&mut self, world: &mut World) -> bool {
        match std::mem::replace(&mut self.stage, Stage::Begin) {
            Stage::Begin => {
                // Only what seems to differ is looked at with the log read to its end.
                let source = world.judged();
                let plan = self.plan(world, &source, &self.view.clone());
                if !plan.settings.is_empty() || !plan.is_stored {
                    self.view = world.stored.clone();
                    self.stage = Stage::Asked { source, stored: self.view.clone() };
                }
                false
            }
            Stage::Asked { source, stored } => {
                let plan = self.plan(world, &source, &stored);
                world.check(&plan);
                self.stage = Stage::Planned { plan };
                false
            }
            Stage::Planned { plan } => {
                let stores = !plan.is_stored;
                if stores {
                    self.store(world, plan.remembered.clone());
                }
                self.sync.handle_sent(TOPIC, &plan.settings);
                self.stage = Stage::Stored { plan };
                stores
            }
            Stage::Stored { plan } => {
                let taken =
                    plan.settings.iter().filter(|setting| setting.value.as_deref() != Some(NOT_TAKEN));
                let taken: Vec<Setting> = taken.cloned().collect();
                for refused in plan.settings.iter().filter(|setting| !taken.contains(setting)) {
                    self.sync.handle_refused(TOPIC, refused);
                }
                world.apply(&taken);
                let left = self.sync.handle_applied(TOPIC, &taken, &plan.remembered);
                self.stage = Stage::Applied { left };
                !plan.settings.is_empty()
            }
            Stage::Applied { left } => {
                let stores = left.is_some();
                if let Some(left) = left {
                    self.store(world, left);
                }
                stores
            }
        }
    }

    fn plan(&mut self, world: &World, source: &SourceConfigs, stored: &Settings) -> Plan {
        let names = self.sync.names(TOPIC, source, stored);
        let seen = world.mirror.iter().filter(|(name, _)| names.contains(*name));
        let mirror = seen.map(|(name, (value, _))| (name.clone(), value.clone())).collect();
        self.sync.plan(TOPIC, source, &mirror, stored)
    }

    fn store(&mut self, world: &mut World, settings: Settings) {
        world.stored = settings;
        self.view = world.stored.clone();
    }

    /// To the end of the look that it is at.
    fn finish(&mut self, world: &mut World) -> bool {
        let mut busy = false;
        while !matches!(self.stage, Stage::Begin) {
            busy |= self.step(world);
        }
        busy
    }

    /// A whole look, with the log read to its end before; tells whether anything was sent or stored.
    fn look(&mut self, world: &mut World) -> bool {
        self.view = world.stored.clone();
        self.step(world);
        self.finish(world)
    }
}

impl World {
    fn new() -> Self {
        let source = NAMES.map(|name| (name, ("default".to_owned(), ConfigSource::Default))).into();
        let filter = TopicConfigFilter::new(DEFAULT_EXCLUDED_CONFIGS, false).unwrap();
        Self { source, mirror: BTreeMap::new(), stored: Settings::new(), filter }
    }

    fn judged(&self) -> SourceConfigs {
        let entries: Vec<TopicConfigEntry<'_>> = self
            .source
            .iter()
            .map(|(name, (value, source))| {
                let (value, source) = (Some(value.as_str()), *source);
                TopicConfigEntry { name, value, source, read_only: false, sensitive: false }
            })
            .collect();
        self.filter.judge(&entries).unwrap()
    }

    /// What others set is neither removed, nor replaced unless the source has a value.
    fn check(&self, plan: &Plan) {
        for setting in &plan.settings {
            assert_ne!(setting.name, EXCLUDED);
            if setting.value.is_none() {
                let (value, author) = &self.mirror[&setting.name];
                assert_eq!(*author, Author::Twinlog, "{}={value} is taken away", setting.name);
            }
        }
    }

    fn apply(&mut self, settings: &[Setting]) {
        for Setting { name, value } in settings {
            match value {
                Some(value) => drop(self.mirror.insert(name.clone(), (value.clone(), Author::Twinlog))),
                None => drop(self.mirror.remove(name)),
            }
        }
    }

    fn act(&mut self, action: &Action, instances: &mut [Instance]) {
        match action {
            Action::Source { name, value, in_file } => {
                let unset = if *in_file { ConfigSource::StaticBroker } else { ConfigSource::Default };
                let value = match value {
                    Some(value) => (format!("source-{value}"), ConfigSource::DynamicTopic),
                    None => ("default".to_owned(), unset),
                };
                self.source.insert(NAMES[*name], value);
            }
            Action::Mirror { name, value: Some(value) } => {
                let value = (format!("somebody-{value}"), Author::Somebody);
                self.mirror.insert(NAMES[*name].to_owned(), value);
            }
            Action::Mirror { name, value: None } => drop(self.mirror.remove(NAMES[*name])),
            Action::Step { instance } => drop(instances[*instance].step(self)),
            Action::Crash { instance } => instances[*instance] = Instance::new(),
        }
    }

    /// The mirror has what the source has, and nothing of twinlog's beside it.
    fn check_level(&self) {
        let judged = self.judged();
        for (name, value) in judged.copied.iter().filter(|(_, value)| *value != NOT_TAKEN) {
            assert_eq!(self.mirror.get(name).map(|(value, _)| value), Some(value), "{name}: {self:?}");
        }
        let twinlogs = self.mirror.iter().filter(|(_, (_, author))| *author == Author::Twinlog);
        for (name, (value, _)) in twinlogs {
            let is_held = judged.copied.get(name).is_some_and(|wanted| wanted == NOT_TAKEN);
            assert!(is_held || judged.copied.get(name) == Some(value), "{name}={value} was left: {self:?}");
        }
    }
}

fn run(actions: &[Action], count: usize) {
    let mut world = World::new();
    let mut instances: Vec<Instance> = (0..count).map(|_| Instance::new()).collect();
    for action in actions {
        world.act(action, &mut instances);
    }
    for instance in &mut instances {
        instance.finish(&mut world);
    }
    let mut theirs = world.mirror.clone();
    theirs
        .retain(|name, (_, author)| *author == Author::Somebody && !world.judged().copied.contains_key(name));
    for _ in 0..3 {
        for instance in &mut instances {
            instance.look(&mut world);
        }
    }
    for (name, value) in &theirs {
        assert_eq!(world.mirror.get(name), Some(value), "{name}");
    }
    world.check_level();
    for instance in &mut instances {
        assert!(!instance.look(&mut world), "a quiet look stored or sent something");
    }
}

proptest! {
    #[test]
    fn after_the_changes_the_next_look_gives_none(
        copied in prop::collection::btree_map("[a-e]", "[0-2]", 0..5),
        unset in prop::collection::btree_set("[a-e]", 0..5),
        mirror in prop::collection::btree_map("[a-e]", "[0-2]", 0..5),
        stored in prop::collection::btree_set(("[a-e]", "[0-2]"), 0..8),
    ) {
        let unset = unset.into_iter().filter(|name| !copied.contains_key(name)).collect();
        let source = SourceConfigs { copied, unset };
        let mut sync = ConfigSync::default();
        let plan = sync.plan(TOPIC, &source, &mirror, &stored);
        sync.handle_sent(TOPIC, &plan.settings);
        let mut after = mirror;
        for Setting { name, value } in &plan.settings {
            match value {
                Some(value) => drop(after.insert(name.clone(), value.clone())),
                None => drop(after.remove(name)),
            }
        }
        let left = sync.handle_applied(TOPIC, &plan.settings, &plan.remembered).unwrap_or(plan.remembered);
        prop_assert!(source.copied.iter().all(|(name, value)| after.get(name) == Some(value)));
        // What was replaced is forgotten one look later.
        let second = sync.plan(TOPIC, &source, &after, &left);
        prop_assert_eq!(&second.settings, &vec![]);
        let third = sync.plan(TOPIC, &source, &after, &second.remembered);
        prop_assert_eq!((third.settings, third.is_stored), (vec![], true));
    }

    #[test]
    fn one_instance_that_crashes_follows_the_source_and_leaves_others_alone(actions in actions(1, true)) {
        run(&actions, 1);
    }

    #[test]
    fn two_instances_follow_the_source_and_leave_others_alone(actions in actions(2, false)) {
        run(&actions, 2);
    }

    #[test]
    fn two_instances_that_crash_take_nothing_away_that_others_set(actions in actions(2, true)) {
        let mut world = World::new();
        let mut instances = [Instance::new(), Instance::new()];
        for action in &actions {
            world.act(action, &mut instances);
        }
    }
}
