//! Sends changes of topic configs, and finds out which of them the target does not take.

use twinlog_protocol::ErrorCode;
use twinlog_protocol::message::types::{
    IncrementalAlterConfigsRequest, StrBytes, incremental_alter_configs_request,
};

use super::ConfigSyncTask;
use crate::driver::state_topic::store_settings;
use crate::driver::topic_configs::TOPIC_RESOURCE;
use crate::driver::topics::{Answers, Said, said};
use crate::io::error::CallError;
use crate::machine::acceptance::{Acceptance, Progress, Setting};
use crate::machine::config_sync::Plan;
use crate::machine::topic_sync::MirroredTopic;
use crate::state::Settings;

/// `AlterConfigOp.OpType`.
const SET: i8 = 0;
const DELETE: i8 = 1;

/// What is to be changed on one topic.
pub(super) struct Alteration {
    topic: MirroredTopic,
    acceptance: Acceptance,
    /// What is stored of the topic.
    remembered: Settings,
}

impl Alteration {
    pub(super) fn new(topic: MirroredTopic, plan: Plan) -> Self {
        Self { topic, acceptance: Acceptance::new(plan.settings, false), remembered: plan.remembered }
    }
}

impl ConfigSyncTask {
    /// Changes topics; those that may be taken later go into `again`.
    pub(super) async fn alter(
        &mut self,
        alterations: Vec<Alteration>,
        again: &mut Vec<MirroredTopic>,
    ) -> Result<(), CallError> {
        let (mut left, mut after) = (alterations, Vec::new());
        while let Some(first) = left.first() {
            let dry_run = first.acceptance.is_dry_run();
            let (now, later): (Vec<Alteration>, Vec<Alteration>) =
                left.into_iter().partition(|alteration| alteration.acceptance.is_dry_run() == dry_run);
            left = later;
            let mut answers = self.send(&now, dry_run).await?;
            for mut alteration in now {
                let answer = answers.remove(&alteration.topic.target_topic);
                match self.settle(&mut alteration, answer, again) {
                    Some(Progress::Again) => left.push(alteration),
                    Some(Progress::Accepted) => after.extend(self.applied(alteration)),
                    Some(Progress::Refused) | None => {}
                }
            }
        }
        store_settings(&self.parts.state, after).await;
        Ok(())
    }

    async fn send(&mut self, alterations: &[Alteration], dry_run: bool) -> Result<Answers, CallError> {
        let mut resources = Vec::new();
        for Alteration { topic, acceptance, .. } in alterations {
            if !dry_run {
                self.sync.handle_sent(&topic.target_topic, acceptance.asked());
            }
            let configs = acceptance.asked().iter().cloned().map(|Setting { name, value }| {
                incremental_alter_configs_request::AlterableConfig::default()
                    .with_name(StrBytes::from_string(name))
                    .with_config_operation(if value.is_some() { SET } else { DELETE })
                    .with_value(value.map(StrBytes::from_string))
            });
            let resource = incremental_alter_configs_request::AlterConfigsResource::default()
                .with_resource_type(TOPIC_RESOURCE)
                .with_resource_name(StrBytes::from_string(topic.target_topic.clone()))
                .with_configs(configs.collect());
            resources.push(resource);
        }
        let request =
            IncrementalAlterConfigsRequest::default().with_resources(resources).with_validate_only(dry_run);
        let target = self.parts.reader.target.clone();
        let answer = target.call(self.somebody(&target), &request).await?;
        let results = answer.responses.into_iter();
        Ok(results
            .map(|it| (it.resource_name.to_string(), said(it.error_code, it.error_message.as_deref())))
            .collect())
    }

    /// Takes the target's answer about one topic; none when there is nothing more to do about it now.
    fn settle(
        &mut self,
        alteration: &mut Alteration,
        answer: Option<Said>,
        again: &mut Vec<MirroredTopic>,
    ) -> Option<Progress> {
        let Alteration { topic, acceptance, .. } = alteration;
        let progress = match answer {
            Some(Ok(())) => acceptance.handle_answer(Ok(())),
            Some(Err((ErrorCode::TopicAuthorizationFailed | ErrorCode::ClusterAuthorizationFailed, _))) => {
                self.complain(
                    None,
                    "the target does not let us change configs of topics (right ALTER_CONFIGS missing)",
                );
                return None;
            }
            // It was deleted since it was listed.
            Some(Err((ErrorCode::UnknownTopicOrPartition, _))) => return None,
            Some(Err((code, _))) if code.is_retriable() => {
                again.push(topic.clone());
                return None;
            }
            Some(Err((code, message))) => {
                let message = format!("{code}: {message}");
                let progress = acceptance.handle_answer(Err(&message));
                if progress == Progress::Refused {
                    let together = acceptance.settings().to_vec();
                    together.iter().for_each(|setting| self.refused(topic, setting, &message));
                }
                progress
            }
            None => return None,
        };
        while let Some((setting, message)) = acceptance.poll_left_out() {
            self.refused(topic, &setting, &message);
        }
        Some(progress)
    }

    /// The target does not take a setting: told once, and not sent again as long as the source has this value.
    fn refused(&mut self, topic: &MirroredTopic, setting: &Setting, message: &str) {
        let (flow, topic) = (&self.parts.reader.flow, &topic.target_topic);
        let (key, value) = (&setting.name, setting.value.as_deref().unwrap_or("(removed)"));
        tracing::warn!(flow, topic, key, value, "the target does not take this topic config: {message}");
        self.sync.handle_refused(topic, setting);
    }

    /// The target took what is left of an alteration; gives what is to be stored instead of what is.
    fn applied(&mut self, alteration: Alteration) -> Option<(String, Settings)> {
        let Alteration { topic, acceptance, remembered } = alteration;
        let settings = acceptance.settings();
        if !settings.is_empty() {
            let shown: Vec<String> = settings.iter().map(shown).collect();
            let (flow, changed) = (&self.parts.reader.flow, shown.join(", "));
            tracing::info!(flow, topic = topic.target_topic, changed, "topic configs synced");
        }
        let left = self.sync.handle_applied(&topic.target_topic, settings, &remembered)?;
        Some((topic.target_topic, left))
    }
}

fn shown(setting: &Setting) -> String {
    match &setting.value {
        Some(value) => format!("{}={value}", setting.name),
        None => format!("{} removed", setting.name),
    }
}
