#![allow(unused)]

use idem_runtime::KeyPart;
use std::marker::PhantomData;

#[derive(KeyPart)]
struct Id<T> {
    number: u64,
    of: PhantomData<T>,
}

fn main() {}
