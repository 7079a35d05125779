#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Plan {
    #[key_part(rename = "")]
    Free,
    Paid,
}

fn part(_: impl KeyPart) {}

fn call(id: Plan) {
    part(id);
}

fn main() {}
