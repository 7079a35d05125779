//! Lifetimes in the headers of impls.

#![deny(rust_2018_idioms, elided_lifetimes_in_paths)]

use idem_runtime::{Error, KeyPart, idempotent};

use super::{is_send, memory, once, once_sync, this_key};

struct Line<'a> {
    text: &'a str,
}

struct Pair<'a, 'b, T: ?Sized> {
    left: &'a T,
    right: &'b mut Vec<u8>,
}

trait Job {
    async fn run(&self, id: u8) -> Result<String, Error>;

    fn run_sync(&mut self, id: u8) -> Result<usize, Error>;
}

impl Line<'_> {
    #[idempotent(key = "impl_lifetimes:elided:<self.text>", idem = memory())]
    async fn len(&self) -> Result<usize, Error> {
        tokio::task::yield_now().await;
        Ok(self.text.len())
    }

    #[idempotent(key = "impl_lifetimes:consumed:<self.text>", idem = memory())]
    async fn consumed(self) -> Result<String, Error> {
        tokio::task::yield_now().await;
        Ok(self.text.to_owned())
    }
}

impl<'a> Line<'a> {
    #[idempotent(key = "impl_lifetimes:named:<self.text>:<other>", idem = memory())]
    async fn longer(&self, other: &'a str) -> Result<bool, Error> {
        tokio::task::yield_now().await;
        Ok(self.text.len() > other.len())
    }

    #[idempotent(key = "impl_lifetimes:given:<id>", replay = false, idem = memory())]
    fn given(&self, id: u8) -> Result<&'a str, Error> {
        Ok(&self.text[usize::from(id)..])
    }
}

impl Job for Line<'_> {
    #[idempotent(key = "impl_lifetimes:run:<self.text>:<id>", idem = memory())]
    async fn run(&self, id: u8) -> Result<String, Error> {
        tokio::task::yield_now().await;
        let _ = id;
        Ok(this_key())
    }

    #[idempotent(key = "impl_lifetimes:run_sync:<self.text>:<id>", idem = memory())]
    fn run_sync(&mut self, id: u8) -> Result<usize, Error> {
        self.text = &self.text[usize::from(id)..];
        Ok(self.text.len())
    }
}

impl<'a, T: KeyPart + Sync + ?Sized> Job for Pair<'a, '_, T> {
    #[idempotent(key = "impl_lifetimes:pair:<self.left>:<id>", idem = memory())]
    async fn run(&self, id: u8) -> Result<String, Error> {
        let left: &'a T = self.left;
        tokio::task::yield_now().await;
        Ok(format!(
            "{} {}",
            this_key(),
            self.right.len() + usize::from(id) + size_of_val(left) - size_of_val(self.left)
        ))
    }

    #[idempotent(key = "impl_lifetimes:pair_sync:<self.left>:<id>", idem = memory())]
    fn run_sync(&mut self, id: u8) -> Result<usize, Error> {
        self.right.push(id);
        Ok(self.right.len())
    }
}

#[tokio::test]
async fn b7_a_lifetime_in_the_header_of_an_impl_is_no_static_one() {
    let text = String::from("line");
    let line = Line { text: &text };
    assert_eq!(once(async || is_send(line.len()).await).await, 4);
    assert_eq!(once(async || is_send(Line { text: &text }.consumed()).await).await, "line");
    assert!(once(async || is_send(line.longer("abc")).await).await);
    assert_eq!(once(async || line.run(1).await).await, "impl_lifetimes:run:line:1");
    assert_eq!(once_sync(|| Line { text: &text }.run_sync(1)), 3);
    let mut list = vec![1];
    let pair = Pair { left: "l", right: &mut list };
    assert_eq!(once(async || pair.run(2).await).await, "impl_lifetimes:pair:l:2 3");
    let mut pair = pair;
    assert_eq!(pair.run_sync(1).expect("a first run"), 2);
    assert_eq!(pair.run_sync(1).expect("a replay"), 2);
    assert_eq!(list, [1, 1], "the body ran once");
    let given = line.given(2).expect("a first run");
    assert_eq!(given, "ne");
}
