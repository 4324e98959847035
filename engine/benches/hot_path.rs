//! The walk of one batch without sockets, for a count of its instructions: Fetch answer in, Produce requests out,
//! acknowledged. `tests/tests/instruction_counts.rs` runs it under valgrind.

#![allow(clippy::unwrap_used, reason = "helpers of tests: a panic is the failure")]

#[path = "../tests/zero_copy/answers.rs"]
mod answers;
#[path = "../tests/zero_copy/partitions.rs"]
mod partitions;

use std::{env, hint::black_box};

use bytes::Bytes;
use twinlog_protocol::produce::ProduceResponse;

use self::answers::{FetchAnswer, PRODUCE_VERSION, Shape, produce_body};
use self::partitions::{Partitions, Sending};

const PARTITIONS: i32 = 4;
/// Answers that are made ready; whoever counts takes the difference between forwarding all of them and none.
const ANSWERS: i64 = 5;

/// Where a batch's header counts its records.
const RECORD_COUNT: usize = 57;

/// Name, batches of each partition in an answer, records of a batch, bytes of a batch.
const SHAPES: [(&str, i64, i64, usize); 4] = [
    ("one record of 200 B", 64, 1, 200),
    ("1 KB", 64, 8, 1 << 10),
    ("16 KB", 64, 8, 16 << 10),
    ("1 MB", 4, 8, 1 << 20),
];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, forwarded] = arguments.as_slice() else {
        // One line for each shape: its name and the batches that `hot_path NAME all` forwards more than `hot_path NAME none`.
        for (name, batches, ..) in SHAPES {
            println!("{name}\t{}", batches * i64::from(PARTITIONS) * ANSWERS);
        }
        return;
    };
    let shape = SHAPES.iter().find(|shape| shape.0 == name).expect("the name of a shape");
    let mut ready = Ready::new(shape);
    if forwarded == "all" {
        for answer in std::mem::take(&mut ready.answers) {
            forward(&mut ready, answer);
        }
    }
    black_box(ready);
}

/// What the brokers do: answers to Fetch, and log ends.
struct Ready {
    answers: Vec<Bytes>,
    log_ends: Vec<i64>,
    partitions: Partitions,
}

impl Ready {
    fn new(&(_, batches_per_partition, records_per_batch, batch_bytes): &(&str, i64, i64, usize)) -> Self {
        let shape = Shape { partitions: PARTITIONS, batches_per_partition, records_per_batch, batch_bytes };
        let mut answer = FetchAnswer::new(shape);
        let answers = (0..ANSWERS).map(|number| {
            answer.move_to(number * answer.records_per_partition());
            Bytes::from(answer.body.clone())
        });
        let answers = answers.collect();
        let log_ends = (0..PARTITIONS).map(|_| 0).collect();
        Self { answers, log_ends, partitions: Partitions::copying(PARTITIONS) }
    }
}

#[inline(never)]
fn forward(ready: &mut Ready, answer: Bytes) {
    ready.partitions.take_fetched(answer);
    while let Some(sending) = ready.partitions.poll_sending() {
        let Sending { partition, ticket, .. } = sending;
        let records = *sending.batch.head[RECORD_COUNT..].first_chunk().expect("a whole header");
        for piece in sending.frame(1).pieces() {
            black_box(piece);
        }
        let base_offset = ready.log_ends[partition];
        // Small batches go as one.
        ready.log_ends[partition] += i64::from(i32::from_be_bytes(records));
        let number = i32::try_from(partition).expect("few partitions");
        let body = produce_body(number, base_offset).into();
        let answer = ProduceResponse::decode(PRODUCE_VERSION, body).expect("a right answer");
        ready.partitions.take_acknowledged(partition, ticket, answer.partitions[0].base_offset);
    }
}
