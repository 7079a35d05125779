#![allow(unused)]

use idem_runtime::KeyPart;

struct OrderId(u64);

#[derive(KeyPart)]
struct Order {
    id: OrderId,
    line: u8,
}

fn main() {}
