//! `Cow` as a result: it is read back as an owned one, whatever its lifetime.

use std::borrow::Cow;

use idem_runtime::{Error, Outcome, idempotent, with_outcome};

use super::memory;

#[idempotent(key = "owned_cows:static:<id>", idem = memory())]
async fn constant(id: u8) -> Result<Cow<'static, str>, Error> {
    let _ = id;
    Ok("a text".into())
}

#[idempotent(key = "owned_cows:lent:<id>", idem = memory())]
fn lent<'a>(id: u8, words: &[&'a str]) -> Result<Vec<Cow<'a, str>>, Error> {
    let _ = id;
    Ok(words.iter().map(|word| Cow::Borrowed(*word)).collect())
}

#[tokio::test]
async fn a_cow_is_replayed_as_an_owned_one() {
    assert_eq!(constant(1).await.expect("a run"), "a text");
    let (again, outcome) = with_outcome(constant(1)).await;
    assert!(matches!(again, Ok(Cow::Owned(text)) if text == "a text"));
    assert_eq!(outcome, Some(Outcome::Replayed));
    let words = ["one", "two"].map(str::to_owned);
    let borrowed = [&*words[0], &*words[1]];
    assert_eq!(lent(1, &borrowed).expect("a run"), borrowed);
    assert!(lent(1, &[]).expect("a replay").iter().all(|word| matches!(word, Cow::Owned(_))));
}
