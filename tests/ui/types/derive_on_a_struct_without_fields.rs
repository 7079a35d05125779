#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Nothing {}

fn main() {}
