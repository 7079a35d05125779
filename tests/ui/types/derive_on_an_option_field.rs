#![allow(unused)]

use idem_runtime::KeyPart;

#[derive(KeyPart)]
struct Order {
    id: u64,
    coupon: Option<String>,
}

fn main() {}
