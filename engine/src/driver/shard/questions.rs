//! Questions of line-ups: those that a node is to be asked at the same moment share a request, or thousands of partitions
//! that begin together would cost the broker more than their records.

use std::collections::BTreeMap;

use twinlog_protocol::fetch::IsolationLevel;

use super::{Done, Shard};
use crate::driver::ask::{self, Place, Told};
use crate::driver::lanes::LINE_UP_LANE;
use crate::io::cluster::ClusterClient;
use crate::machine::Now;
use crate::machine::hold::Side;
use crate::machine::line_up::Question;
use crate::machine::partition::PartitionMachine;

/// Partitions in one request: few enough that their answer comes at once.
const PARTITIONS_MAX: usize = 500;

/// Who asks, and about which partition.
#[derive(Debug)]
struct Asker {
    slot: usize,
    attempt: u64,
    place: Place,
    /// Whose last batch is asked for.
    producer_id: i64,
}

/// What is to be asked, by node and question.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: BTreeMap<(i32, Question), Vec<Asker>>,
}

impl Shard {
    /// Puts a question down: [`Shard::send_questions`] asks it.
    pub(super) fn ask(
        &mut self,
        now: Now,
        (slot, attempt): (usize, u64),
        question: Question,
        leader_epoch: i32,
        producer_id: Option<i64>,
    ) {
        let Some(place) = self.slots[slot].place(Side::Target, Some(leader_epoch), LINE_UP_LANE) else {
            return self.failed(now, slot, attempt, Side::Target, request_of(question), &ask::no_leader());
        };
        let producer_id = match (question, producer_id) {
            // Nobody has written under an id that there is not.
            (Question::LastBatch, None) => return self.touch(slot).handle_last_batch(now, attempt, None),
            (_, producer_id) => producer_id.unwrap_or(-1),
        };
        let asker = Asker { slot, attempt, place, producer_id };
        self.questions.waiting.entry((asker.place.node, question)).or_default().push(asker);
    }

    /// Asks what was put down.
    pub(super) fn send_questions(&mut self) {
        for ((_, question), mut askers) in std::mem::take(&mut self.questions.waiting) {
            askers.sort_by(|one, other| one.place.topic.cmp(&other.place.topic));
            while !askers.is_empty() {
                let rest = askers.split_off(askers.len().min(PARTITIONS_MAX));
                let asked = std::mem::replace(&mut askers, rest);
                let target = self.parts.target.clone();
                self.errands.push(Box::pin(async move { told(&target, question, asked).await }));
            }
        }
    }

    /// Gives each who asked his answer; where the request failed, all hear why.
    pub(super) fn handle_told<T>(
        &mut self,
        now: Now,
        question: Question,
        asked: Vec<(usize, u64)>,
        told: Told<T>,
        take: impl Fn(&mut PartitionMachine, u64, T),
    ) {
        let request = request_of(question);
        let answers = match told {
            Ok(answers) => answers,
            Err(why) => {
                let all = asked.into_iter();
                return all.for_each(|(slot, attempt)| {
                    self.failed(now, slot, attempt, Side::Target, request, &why);
                });
            }
        };
        for ((slot, attempt), answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok(answer) => take(self.touch(slot), attempt, answer),
                Err(why) => self.failed(now, slot, attempt, Side::Target, request, &why),
            }
        }
    }
}

async fn told(target: &ClusterClient, question: Question, askers: Vec<Asker>) -> Done {
    let asked = askers.iter().map(|asker| (asker.slot, asker.attempt)).collect();
    let (places, producer_ids): (Vec<Place>, Vec<i64>) =
        askers.into_iter().map(|asker| (asker.place, asker.producer_id)).unzip();
    match question {
        Question::LastBatch => {
            Done::LastBatches { asked, told: ask::last_batches(target, &places, &producer_ids).await }
        }
        Question::LogEnd => Done::Offsets { asked, question, told: ask::log_ends(target, &places).await },
        Question::HighWatermark => Done::Offsets {
            asked,
            question,
            told: ask::list_offsets(target, &places, ask::LATEST, IsolationLevel::ReadUncommitted).await,
        },
    }
}

/// The question's name in the protocol.
fn request_of(question: Question) -> &'static str {
    match question {
        Question::LogEnd => "OffsetForLeaderEpoch",
        Question::LastBatch => "DescribeProducers",
        Question::HighWatermark => "ListOffsets",
    }
}
