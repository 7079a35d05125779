#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Never {}

fn part(_: impl KeyPart) {}

fn call(id: Never) {
    part(id);
}

fn main() {}
