//! Templates: escapes, separators, field paths, repeated and doubled placeholders.

use idem_runtime::{Error, idempotent};

use super::memory;

#[derive(Clone)]
struct Order {
    customer: Customer,
    lines: (u8, (u8, u8)),
}

#[derive(Clone)]
struct Customer {
    id: u64,
}

#[idempotent(key = "templates:<<a>>:<id>", key_fn = literal_key, idem = memory())]
fn literal(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "templates|<a>#<b>:x-<a>", key_fn = separators_key, idem = memory())]
fn separators(a: u8, b: &str) -> Result<usize, Error> {
    Ok(usize::from(a) + b.len())
}

#[idempotent(key = "templates:paths:<order.customer.id>:<order.lines.1.0>", key_fn = paths_key, idem = memory())]
fn paths(order: &Order) -> Result<u64, Error> {
    Ok(order.customer.id)
}

#[idempotent(key = r"templates:büro{b}:<a>", key_fn = text_key, idem = memory())]
fn text(a: char) -> Result<char, Error> {
    Ok(a)
}

#[test]
fn b4_templates_render_as_they_read() {
    let order = Order { customer: Customer { id: 7 }, lines: (1, (2, 3)) };
    let keys = [
        (literal_key(&1), "templates:<a>:1"),
        (separators_key(&1, "b"), "templates|1#b:x-1"),
        (paths_key(&order), "templates:paths:7:2"),
        (text_key(&'x'), "templates:büro{b}:x"),
    ];
    for (key, text) in keys {
        assert_eq!(key.expect("a key").to_string(), text);
    }
    assert!(literal(1).is_ok() && separators(1, "b").is_ok() && paths(&order).is_ok() && text('x').is_ok());
    assert_eq!(order.lines.0, 1);
}
