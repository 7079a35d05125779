#![allow(unused)] // offences: 2

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Order {
    id: u64,
    lines: Vec<u64>,
    note: Option<String>,
}

fn main() {}
