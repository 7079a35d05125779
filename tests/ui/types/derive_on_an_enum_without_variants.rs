#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
enum Never {}

fn main() {}
