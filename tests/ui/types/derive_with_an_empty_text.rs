#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Plan {
    #[key_part(rename = "")]
    Free,
    Paid,
}

fn main() {}
