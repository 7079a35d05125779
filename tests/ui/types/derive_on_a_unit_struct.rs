#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Nothing;

fn part(_: impl KeyPart) {}

fn call(id: Nothing) {
    part(id);
}

fn main() {}
