#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
union Bits {
    number: u32,
    bytes: [u8; 4],
}

fn part(_: impl KeyPart) {}

fn call(id: Bits) {
    part(id);
}

fn main() {}
