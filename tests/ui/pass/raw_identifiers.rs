//! Raw identifiers, which show without `r#` in keys and names.

use idem_runtime::{Error, KeyPart, idempotent, jobs};

use super::{memory, once, once_sync, this_key};

#[derive(Clone)]
struct Order {
    r#type: u8,
}

#[derive(Clone, Copy, KeyPart)]
#[allow(non_camel_case_types)]
enum Kind {
    r#fn,
}

#[idempotent(key = "raw:<type>:<r#fn>:<order.type>:<kind>", fingerprint = (r#match), key_fn = r#struct, idem = memory())]
async fn r#move(r#type: u8, r#fn: u8, order: Order, kind: Kind, r#match: u8) -> Result<u8, Error> {
    let _ = (order, kind);
    Ok(r#type + r#fn + r#match)
}

#[idempotent(key = "raw:one:<type>", idem = memory())]
fn r#final(r#type: u8) -> Result<String, Error> {
    let _ = r#type;
    Ok(this_key())
}

#[tokio::test]
async fn b4_no_raw_prefix_shows_in_a_key() {
    let order = Order { r#type: 3 };
    assert_eq!(once(async || r#move(1, 2, order.clone(), Kind::r#fn, 4).await).await, 7);
    assert_eq!(r#struct(&1, &2, &order, &Kind::r#fn).expect("a key").to_string(), "raw:1:2:3:fn");
    assert!(jobs::all().any(|job| job.path().ends_with("raw_identifiers::move")));
    assert_eq!(once_sync(|| r#final(1)), "raw:one:1");
}
