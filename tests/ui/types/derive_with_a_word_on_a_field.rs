#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Id {
    #[key_part(skip)]
    id: u64,
    tenant: u64,
}

fn part(_: impl KeyPart) {}

fn call(id: Id) {
    part(id);
}

fn main() {}
