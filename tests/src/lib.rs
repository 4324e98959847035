//! Real brokers, judges and models that the tests share.

pub mod deadline;
pub mod judge;
pub mod places;
pub mod process;
pub mod proxy;
pub mod real;
