#![allow(unused)]

use idem_runtime::KeyPart;
use std::marker::PhantomData;

#[derive(KeyPart)]
struct Id<T> {
    number: u64,
    of: PhantomData<T>,
}

fn part(_: impl KeyPart) {}

fn call(id: Id<u8>) {
    part(id);
}

fn main() {}
