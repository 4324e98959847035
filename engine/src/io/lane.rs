//! What connections are for: each carries the client id of its role, by which brokers measure and throttle.

use std::sync::Arc;

/// The kind of a Kafka client that a connection stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Metadata, topics, questions: everything but records.
    Admin,
    /// Fetches records.
    Consumer,
    /// Writes records.
    Producer,
}

/// A connection of its own to a node: what must not wait for something slow takes another lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// Decides the client id.
    pub role: Role,
    /// Tells lanes of one role apart.
    pub number: u16,
}

impl Lane {
    /// A lane for everything but records.
    #[must_use]
    pub const fn admin(number: u16) -> Self {
        Self { role: Role::Admin, number }
    }

    /// A lane that fetches records.
    #[must_use]
    pub const fn consumer(number: u16) -> Self {
        Self { role: Role::Consumer, number }
    }

    /// A lane that writes records.
    #[must_use]
    pub const fn producer(number: u16) -> Self {
        Self { role: Role::Producer, number }
    }
}

/// The names that brokers show in logs and quotas (`client.id`), by role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIds {
    /// Of [`Role::Admin`].
    pub admin: Arc<str>,
    /// Of [`Role::Consumer`].
    pub consumer: Arc<str>,
    /// Of [`Role::Producer`].
    pub producer: Arc<str>,
}

impl ClientIds {
    /// One name for all roles.
    #[must_use]
    pub fn all(id: &str) -> Self {
        let id: Arc<str> = Arc::from(id);
        Self { admin: Arc::clone(&id), consumer: Arc::clone(&id), producer: id }
    }

    /// The name of a role.
    #[must_use]
    pub fn of(&self, role: Role) -> &Arc<str> {
        match role {
            Role::Admin => &self.admin,
            Role::Consumer => &self.consumer,
            Role::Producer => &self.producer,
        }
    }
}
