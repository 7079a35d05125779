#![allow(unused)] // offences: 2

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Plan {
    Free,
    Paid(u64),
    Trial { days: u8 },
}

fn part(_: impl KeyPart) {}

fn call(id: Plan) {
    part(id);
}

fn main() {}
