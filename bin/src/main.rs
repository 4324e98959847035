//! twinlog: the program.

fn main() {}
