//! `replay = false`: results that serde does not know, and borrowed ones.

use idem_runtime::{Error, ErrorKind, Outcome, idempotent, with_outcome};

use super::memory;

#[derive(Debug, PartialEq)]
struct Opaque(u8);

struct Service {
    name: String,
}

impl Service {
    #[idempotent(key = "unstored:name:<id>", replay = false, idem = memory())]
    async fn name(&self, id: u8) -> Result<&str, Error> {
        let _ = id;
        Ok(&self.name)
    }

    #[idempotent(key = "unstored:exclusive:<id>", replay = false, idem = memory())]
    async fn exclusive(&mut self, id: u8) -> Result<&mut String, Error> {
        let _ = id;
        Ok(&mut self.name)
    }
}

#[idempotent(key = "unstored:opaque:<id>", replay = false, idem = memory())]
async fn opaque(id: u8) -> Result<Opaque, Error> {
    Ok(Opaque(id))
}

#[idempotent(key = "unstored:chosen:<id>", replay = false, idem = memory())]
fn chosen<'a>(id: u8, left: &'a str, right: &'a str) -> Result<&'a str, Error> {
    Ok(if id == 0 { left } else { right })
}

#[tokio::test]
async fn an_unstored_result_is_given_once() {
    assert_eq!(opaque(1).await.expect("a first run"), Opaque(1));
    let (refused, outcome) = with_outcome(opaque(1)).await;
    assert!(matches!(refused, Err(Error::AlreadyCompleted { .. })), "{refused:?}");
    assert_eq!(outcome, Some(Outcome::Refused(ErrorKind::AlreadyCompleted)));
    let mut service = Service { name: "acme".to_owned() };
    assert_eq!(service.name(1).await.expect("a name"), "acme");
    service.exclusive(1).await.expect("a name").push('!');
    assert_eq!(service.name, "acme!");
    assert_eq!(chosen(1, "l", "r").expect("a side"), "r");
}
