#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
#[key_part(transparent)]
struct Id(u64);

fn part(_: impl KeyPart) {}

fn call(id: Id) {
    part(id);
}

fn main() {}
