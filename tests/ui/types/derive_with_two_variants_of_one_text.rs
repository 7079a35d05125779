#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Plan {
    Free,
    #[key_part(rename = "Free")]
    Gratis,
}

fn main() {}
