#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
#[key_part(display)]
struct Id(u64);

fn main() {}
