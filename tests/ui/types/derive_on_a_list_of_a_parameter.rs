#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Ids<T>(Vec<T>);

fn main() {}
