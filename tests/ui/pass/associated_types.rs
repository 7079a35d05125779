//! Associated types and constants in signatures.

use idem_runtime::{Error, KeyPart, idempotent};
use serde::{Serialize, de::DeserializeOwned};

use super::{is_send, memory, once, once_sync, this_key};

trait Entity {
    const KIND: &'static str;

    type Id: KeyPart + Copy + Send + Sync;
    type Row: Serialize + DeserializeOwned + Send + Default;
    type Failure: From<Error> + Send;
}

struct User;

impl Entity for User {
    const KIND: &'static str = "user";

    type Id = u32;
    type Row = Option<String>;
    type Failure = anyhow::Error;
}

#[idempotent(key = "associated_types:loaded:<id>", idem = memory())]
async fn loaded<E: Entity>(id: E::Id, _entity: E) -> Result<<E as Entity>::Row, E::Failure> {
    tokio::task::yield_now().await;
    let _ = id;
    Ok(E::Row::default())
}

struct Repository<E: Entity> {
    last: E::Id,
}

impl<E: Entity> Repository<E> {
    #[idempotent(key = "associated_types:kept:<self.last>:<id>", idem = memory())]
    async fn kept(&self, id: E::Id) -> Result<(String, E::Row), E::Failure> {
        tokio::task::yield_now().await;
        let _ = id;
        Ok((format!("{} {}", E::KIND, this_key()), E::Row::default()))
    }
}

#[idempotent(key = "associated_types:first:<id>", idem = memory())]
fn first<I>(id: u8, mut items: I) -> Result<Option<I::Item>, Error>
where
    I: Iterator,
    I::Item: Serialize + DeserializeOwned,
{
    let _ = id;
    Ok(items.next())
}

#[tokio::test]
async fn associated_types_stand_in_signatures() {
    assert_eq!(once(async || is_send(loaded(1, User)).await).await, None);
    let repository = Repository::<User> { last: 4 };
    let (text, row) = once(async || is_send(repository.kept(5)).await).await;
    assert_eq!((text.as_str(), row), ("user associated_types:kept:4:5", None));
    assert_eq!(once_sync(|| first(1, [3_u8, 4].into_iter())), Some(3));
}
