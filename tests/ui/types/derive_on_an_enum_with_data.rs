#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Plan {
    Free,
    Paid(u64),
    Trial { days: u8 },
}

fn main() {}
