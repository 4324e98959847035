//! Real brokers, judges and models that the tests share.
