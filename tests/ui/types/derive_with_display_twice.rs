#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
#[key_part(display)]
#[key_part(display)]
enum Plan {
    Free,
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("free")
    }
}

fn part(_: impl KeyPart) {}

fn call(id: Plan) {
    part(id);
}

fn main() {}
