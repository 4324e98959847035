//! One table per response: its fields as Kafka's message definitions have them.

mod api_versions;
mod configs;
mod metadata;
mod offsets;
mod producers;
mod topics;
