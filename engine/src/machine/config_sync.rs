//! What to change in the settings of a mirror, so that it follows its source without touching what others set there.
//!
//! - C1: a setting is put on the mirror where the source has a value to copy and the mirror does not have exactly this
//!   value as a setting of the topic itself.
//! - C2: a setting is taken away only where the source has nothing to copy any more, and the mirror still has a value
//!   that twinlog put there: remembered by name and value. What others set stays.
//! - C3: of what the source says nothing about (excluded, sensitive, not named at all) nothing is changed.
//! - C4: what is put there is remembered before, so a crash in between forgets nothing. What the mirror does not have
//!   (any more) and is not about to get is forgotten, so that whoever sets the same value later owns it.
//! - C5: where nothing differs, nothing is sent and nothing is stored.
//! - C6: what the target refused is not sent again until the source has another value.
//!
//! What is remembered is in the state topic, and the last entry in its log counts: whoever decides has read that to its end.
//! Of two instances that write about one topic at the same time one may still leave out what the other is about to set; so
//! each keeps in mind what it set itself, and stores it again at the next look.
//!
//! # References
//! `MirrorSourceConnector#syncTopicConfigs` sends everything each time and takes away whatever the source does not have
//! (KAFKA-14898 and others); KIP-339 for single changes.

use std::collections::{BTreeMap, BTreeSet};

use super::acceptance::Setting;
use crate::policy::SourceConfigs;
use crate::state::{Settings, settings_bytes};

/// Most bytes that are remembered of one topic: one entry of the state topic, far below what a broker takes. What goes
/// beyond is set all the same, and never taken away.
const REMEMBERED_BYTES_MAX: usize = 64 << 10;

/// What one look at a topic leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// To be changed on the mirror.
    pub settings: Vec<Setting>,
    /// What shall be stored of the topic before anything is changed.
    pub remembered: Settings,
    /// Whether that is stored already.
    pub is_stored: bool,
}

/// The settings of all mirrors of a flow as one process sees them.
#[derive(Debug, Default)]
pub struct ConfigSync {
    topics: BTreeMap<String, Topic>,
    /// What was refused when topics were created, as far as it was taken notice of.
    refused_at_creation: BTreeSet<(String, Setting)>,
}

#[derive(Debug, Default)]
struct Topic {
    /// What this process put there, whatever is stored by now.
    placed: Settings,
    /// What the target refused, by name.
    refused: BTreeMap<String, Option<String>>,
}

impl ConfigSync {
    /// These topics are there: all others are forgotten. `refused` is what the target would not take when topics were
    /// created, those of earlier lists and of topics that are not there yet among it.
    pub fn handle_listed(&mut self, target_topics: &BTreeSet<&str>, refused: &BTreeSet<(String, Setting)>) {
        self.topics.retain(|topic, _| target_topics.contains(topic.as_str()));
        self.refused_at_creation.retain(|(topic, _)| target_topics.contains(topic.as_str()));
        for creation in refused {
            // Once each: later the source may have another value, and then this one again.
            if target_topics.contains(creation.0.as_str())
                && self.refused_at_creation.insert(creation.clone())
            {
                self.handle_refused(&creation.0, &creation.1);
            }
        }
    }

    /// The names of settings that matter on the mirror: it need not be asked for others, or at all if there are none.
    #[must_use]
    pub fn names(&self, target_topic: &str, source: &SourceConfigs, stored: &Settings) -> BTreeSet<String> {
        let placed = self.topics.get(target_topic).map(|topic| &topic.placed);
        let known = stored.iter().chain(placed.into_iter().flatten()).map(|(name, _)| name);
        source.copied.keys().chain(known).cloned().collect()
    }

    /// Compares a topic with its mirror. `mirror` are the settings of the mirror itself, as far as [`ConfigSync::names`]
    /// goes; `stored` is what the state topic says of it.
    pub fn plan(
        &mut self,
        target_topic: &str,
        source: &SourceConfigs,
        mirror: &BTreeMap<String, String>,
        stored: &Settings,
    ) -> Plan {
        let mut unknown = Topic::default();
        let topic = self.topics.get_mut(target_topic).unwrap_or(&mut unknown);
        topic.refused.retain(|name, value| source.copied.get(name) == value.as_ref());
        let known: BTreeSet<&(String, String)> = stored.iter().chain(&topic.placed).collect();
        let is_there = |name: &String, value: &String| mirror.get(name) == Some(value);
        let set = source.copied.iter().filter(|(name, value)| !is_there(name, value));
        let ours = |name: &&String| known.iter().any(|(ours, value)| ours == *name && is_there(ours, value));
        let set = set.map(|(name, value)| Setting { name: name.clone(), value: Some(value.clone()) });
        let unset = source.unset.iter().filter(ours).map(|name| Setting { name: name.clone(), value: None });
        let is_refused = |setting: &Setting| topic.refused.contains_key(&setting.name);
        let settings: Vec<Setting> = set.chain(unset).filter(|setting| !is_refused(setting)).collect();
        let kept = known.into_iter().filter(|(name, value)| is_there(name, value)).cloned();
        let remembered = within_bounds(kept.chain(settings.iter().filter_map(pair)).collect());
        topic.placed.retain(|pair| remembered.contains(pair));
        Plan { is_stored: remembered == *stored, settings, remembered }
    }

    /// These settings are about to be sent for a topic.
    pub fn handle_sent(&mut self, target_topic: &str, settings: &[Setting]) {
        let topic = self.topics.entry(target_topic.to_owned()).or_default();
        topic.placed.extend(settings.iter().filter_map(pair));
    }

    /// The target took these settings; `remembered` is what is stored of the topic. Gives what is to be stored instead,
    /// where something was taken away.
    pub fn handle_applied(
        &mut self,
        target_topic: &str,
        settings: &[Setting],
        remembered: &Settings,
    ) -> Option<Settings> {
        let is_gone =
            |name: &String| settings.iter().any(|setting| setting.name == *name && setting.value.is_none());
        if let Some(topic) = self.topics.get_mut(target_topic) {
            topic.placed.retain(|(name, _)| !is_gone(name));
        }
        let left: Settings = remembered.iter().filter(|(name, _)| !is_gone(name)).cloned().collect();
        (left != *remembered).then_some(left)
    }

    /// The target refused a setting of a topic.
    pub fn handle_refused(&mut self, target_topic: &str, setting: &Setting) {
        let topic = self.topics.entry(target_topic.to_owned()).or_default();
        topic.refused.insert(setting.name.clone(), setting.value.clone());
    }
}

/// What is to be remembered of a mirror that is created with these settings.
#[must_use]
pub fn remembered_of(settings: &[Setting]) -> Settings {
    within_bounds(settings.iter().filter_map(pair).collect())
}

fn pair(setting: &Setting) -> Option<(String, String)> {
    Some((setting.name.clone(), setting.value.clone()?))
}

/// The same settings are left out each time, so that what is stored and what is wanted can be compared.
fn within_bounds(mut settings: Settings) -> Settings {
    let mut bytes = 0;
    settings.retain(|setting| {
        bytes += settings_bytes([setting]);
        bytes <= REMEMBERED_BYTES_MAX
    });
    settings
}

#[cfg(test)]
mod tests;
