//! A trait of the user's with methods for every type, and a module with the name of a tool.

use idem_runtime::{Error, KeyPart, idempotent};

use super::memory;

/// Attributes such as `#[diagnostic::on_unimplemented]` look here first.
mod diagnostic {}

trait Extension {
    fn of(&self, _other: u8) -> u8 {
        1
    }
    fn again(&self) -> u8 {
        2
    }
    fn text(&self) -> u8 {
        3
    }
    fn part(&self) -> u8 {
        4
    }
    fn describe(&self) -> u8 {
        5
    }
}

impl<T: ?Sized> Extension for T {}

#[derive(Clone, Copy, KeyPart)]
struct Id(u8);

#[derive(KeyPart)]
struct Place(Id, Id);

#[derive(Debug)]
struct Mute;

impl From<Error> for Mute {
    fn from(_: Error) -> Self {
        Self
    }
}

#[idempotent(key = "own_extensions:<id>:<place>", key_fn = sum_key, idem = memory())]
async fn sum(id: Id, place: &Place, float: &str) -> Result<u8, Mute> {
    let all = [id.of(0), id.again(), place.text(), float.part(), float.describe()];
    Ok(all.iter().sum::<u8>() + place.0.0 + place.1.0)
}

#[tokio::test]
async fn methods_for_every_type_change_nothing() {
    let place = Place(Id(2), Id(3));
    assert_eq!(sum(Id(1), &place, "").await.expect("a run"), 20);
    assert_eq!(sum_key(&Id(1), &place).expect("a key").as_str(), "own_extensions:1:2,3");
}
