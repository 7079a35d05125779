#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Amount(f64);

fn main() {}
