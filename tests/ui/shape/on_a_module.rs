#![allow(unused)]

use idem_runtime::idempotent;

#[idempotent(key = "billing:<user_id>")]
mod jobs {
    pub fn charge() {}
}

fn call() {
    jobs::charge();
}

fn main() {}
