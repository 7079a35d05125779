//! Fields and names that are keywords, in templates and fingerprints.

use idem_runtime::{Error, KeyPart, idempotent, jobs};

use super::{memory, once, once_sync, this_key};

#[derive(Clone)]
struct Order {
    r#type: u8,
    r#struct: Inner,
}

#[derive(Clone)]
struct Inner {
    r#fn: (u8, u8),
    r#ref: &'static str,
}

#[idempotent(
    key = "keyword_fields:deep:<order.type>:<order.struct.fn.1>:<order.r#struct.ref>",
    fingerprint = (order.r#struct.r#fn.0),
    key_fn = r#deep_key,
    idem = memory()
)]
async fn deep(order: Order) -> Result<String, Error> {
    tokio::task::yield_now().await;
    let _ = order;
    Ok(this_key())
}

struct Service {
    r#loop: u8,
}

impl Service {
    #[idempotent(key = "keyword_fields:method:<self.loop>:<while>", idem = memory())]
    fn r#try(&self, r#while: u8) -> Result<String, Error> {
        let _ = (self.r#loop, r#while);
        Ok(this_key())
    }
}

#[derive(KeyPart, Clone, Copy)]
struct Pair {
    r#in: u8,
    r#as: u8,
}

#[idempotent(key = "keyword_fields:pair:<pair>", idem = memory())]
fn r#yield(pair: Pair) -> Result<String, Error> {
    let _ = (pair.r#in, pair.r#as);
    Ok(this_key())
}

mod r#impl {
    use super::{Error, idempotent, memory, this_key};

    #[idempotent(key = "keyword_fields:module:<dyn>", idem = memory())]
    pub(super) fn r#where(r#dyn: &str) -> Result<String, Error> {
        let _ = r#dyn;
        Ok(this_key())
    }
}

#[tokio::test]
async fn b4_a_keyword_is_a_name_like_any_other() {
    let order = Order { r#type: 1, r#struct: Inner { r#fn: (2, 3), r#ref: "r" } };
    assert_eq!(once(async || deep(order.clone()).await).await, "keyword_fields:deep:1:3:r");
    assert_eq!(deep_key(&order).expect("a key").to_string(), "keyword_fields:deep:1:3:r");
    let other = Order { r#struct: Inner { r#fn: (9, 3), r#ref: "r" }, ..order };
    assert!(matches!(deep(other).await, Err(Error::FingerprintMismatch { .. })));
    assert_eq!(once_sync(|| Service { r#loop: 4 }.r#try(5)), "keyword_fields:method:4:5");
    assert_eq!(once_sync(|| r#yield(Pair { r#in: 1, r#as: 2 })), "keyword_fields:pair:1,2");
    assert_eq!(once_sync(|| r#impl::r#where("x")), "keyword_fields:module:x");
}

#[test]
fn b4_no_raw_prefix_shows_in_a_name() {
    for name in ["keyword_fields::try", "keyword_fields::yield", "::where"] {
        assert!(jobs::all().any(|job| job.path().ends_with(name)), "{name}");
    }
}
