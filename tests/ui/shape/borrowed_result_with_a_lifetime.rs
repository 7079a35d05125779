#![allow(unused)]

use idem_runtime::{Error, idempotent};

struct Line<'a> {
    month: &'a str,
}

#[idempotent(key = "billing:<user_id>")]
fn job<'a>(user_id: u64, month: &'a str) -> Result<Option<Line<'a>>, Error> {
    Ok(Some(Line { month }))
}

fn main() {
    let _ = job(1, "2024-06");
}
