//! Doc comments, whatever stands in them.

#![allow(clippy::unused_self)]

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

/// Says `{name}` and `<T>` and [brackets], {braces} and <id>, "quotes" and \ and {{}} and {0:?}.
///
/// ```text
/// let {x} = <T>::new();
/// ```
#[idempotent(key = "documented:line:<id>", idem = memory())]
fn line(id: u8) -> Result<u8, Error> {
    Ok(id)
}

/** Says {x} and <T> in a block,
 * over two lines. */
#[idempotent(key = "documented:block:<id>", idem = memory())]
async fn block(id: u8) -> Result<u8, Error> {
    Ok(id)
}

#[idempotent(key = "documented:attribute:<id>", idem = memory())]
#[doc = "Says {x} and <T>."]
#[doc = concat!("Made of ", "two: {}", "<T>")]
#[doc(alias = "{x}")]
fn attribute(id: u8) -> Result<u8, Error> {
    Ok(id)
}

struct Service;

impl Service {
    /// Says `{self.0}` and `<self.id>`.
    #[idempotent(key = "documented:method:<id>", idem = memory())]
    fn method(&self, id: u8) -> Result<u8, Error> {
        Ok(id)
    }
}

#[tokio::test]
async fn b4_doc_comments_are_no_templates() {
    assert_eq!(once_sync(|| line(1)), 1);
    assert_eq!(once(async || block(1).await).await, 1);
    assert_eq!(once_sync(|| attribute(1)), 1);
    assert_eq!(once_sync(|| Service.method(1)), 1);
}
