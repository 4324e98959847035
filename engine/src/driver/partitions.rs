//! Where one asks how the partitions of a flow fare: the shard while it runs, what it said last when it is gone.
//!
//! Asked for only: a flow of ten thousand partitions tells nobody what nobody wants to know.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::shard::ShardInput;
use crate::partition_status::PartitionStatus;

/// Who knows; at first the flow has none.
#[derive(Debug, Default)]
pub(crate) struct Partitions(Known);

#[derive(Debug, Default)]
enum Known {
    #[default]
    Nothing,
    /// To the shard. It ends when its flow does, whoever might still ask.
    By(mpsc::WeakSender<ShardInput>),
    /// What the shard said last.
    Last(Arc<[PartitionStatus]>),
}

impl Partitions {
    /// The flow's shard is to be asked.
    pub(super) fn of(shard: &mpsc::Sender<ShardInput>) -> Self {
        Self(Known::By(shard.downgrade()))
    }

    /// The shard's last word.
    pub(super) fn last(partitions: Vec<PartitionStatus>) -> Self {
        Self(Known::Last(partitions.into()))
    }
}

/// Asks whoever knows. Nothing if the shard was lost.
pub(crate) async fn ask(mut partitions: watch::Receiver<Partitions>) -> Vec<PartitionStatus> {
    let shard = match &partitions.borrow().0 {
        Known::Nothing => return Vec::new(),
        Known::By(shard) => shard.upgrade(),
        Known::Last(last) => return last.to_vec(),
    };
    if let Some(shard) = shard {
        let (answer, asked) = oneshot::channel();
        let sent = shard.send(ShardInput::AskPartitions(answer)).await;
        drop(shard);
        // Both fail when it comes to rest meanwhile.
        if sent.is_ok()
            && let Ok(answer) = asked.await
        {
            return answer;
        }
    }
    let last = partitions.wait_for(|partitions| matches!(partitions.0, Known::Last(_))).await;
    match last.as_deref() {
        Ok(Partitions(Known::Last(last))) => last.to_vec(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(partition: i32) -> PartitionStatus {
        PartitionStatus {
            topic: "orders".to_owned(),
            target_topic: "west.orders".to_owned(),
            partition,
            state: crate::PartitionState::CaughtUp,
            since: std::time::SystemTime::UNIX_EPOCH,
            position: Some(7),
            readable_end: Some(7),
        }
    }

    #[tokio::test]
    async fn the_shard_is_asked_while_it_runs_and_its_last_word_counts_then() {
        let (tell, seen) = watch::channel(Partitions::default());
        assert!(ask(seen.clone()).await.is_empty());
        let (to_shard, mut inputs) = mpsc::channel(1);
        tell.send_replace(Partitions::of(&to_shard));
        let asked = tokio::spawn(ask(seen.clone()));
        let Some(ShardInput::AskPartitions(answer)) = inputs.recv().await else { panic!("nobody asks") };
        answer.send(vec![status(1)]).unwrap();
        assert_eq!(asked.await.unwrap(), [status(1)]);
        // Asked while it comes to rest.
        let asked = tokio::spawn(ask(seen.clone()));
        let question = inputs.recv().await.unwrap();
        tell.send_replace(Partitions::last(vec![status(2)]));
        drop((question, inputs));
        assert_eq!(asked.await.unwrap(), [status(2)]);
        assert_eq!(ask(seen).await, [status(2)]);
    }

    #[tokio::test]
    async fn whoever_asks_keeps_no_flow_alive_and_waits_for_no_lost_one() {
        let (tell, seen) = watch::channel(Partitions::default());
        let (to_shard, mut inputs) = mpsc::channel(1);
        tell.send_replace(Partitions::of(&to_shard));
        drop(to_shard);
        assert!(inputs.recv().await.is_none());
        let asked = tokio::spawn(ask(seen));
        tokio::task::yield_now().await;
        drop(tell);
        assert!(asked.await.unwrap().is_empty());
    }
}
