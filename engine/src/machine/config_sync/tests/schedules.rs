//! Random changes on both sides, crashes and two instances, against a naive source topic and its mirror.

use proptest::prelude::*;

use super::*;
use crate::policy::{ConfigSource, DEFAULT_EXCLUDED_CONFIGS, TopicConfigEntry, TopicConfigFilter};

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
