#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Plan {
    Free,
    #[key_part(rename = "Free")]
    Gratis,
}

fn part(_: impl KeyPart) {}

fn call(id: Plan) {
    part(id);
}

fn main() {}
