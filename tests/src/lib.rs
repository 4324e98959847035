//! Real brokers, judges and models that the tests share.

pub mod capture_logs;
pub mod deadline;
pub mod judge;
pub mod places;
pub mod process;
pub mod proxy;
pub mod real;
pub mod scenario;
pub mod twinlog;
