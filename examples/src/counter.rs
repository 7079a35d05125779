use std::{
    io::{self, Write as _},
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{Charges, http::Message};

/// The provider's side of the counter.
struct Counter {
    charges: Charges,
    replies_to_lose: AtomicU64,
}

#[derive(Deserialize)]
struct Request {
    order: u64,
    cents: u64,
}

/// Says where it is, and serves until its customer has left: charges on `POST /charges`, each under its
/// `Idempotency-Key`, and tells of one on `GET /charges/KEY`. So many of its first charges it books without a word.
///
/// # Errors
///
/// There is no address to be had.
pub async fn serve(charges: Charges, replies_to_lose: u64) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let mut out = io::stdout();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;

    let counter = Arc::new(Counter { charges, replies_to_lose: AtomicU64::new(replies_to_lose) });
    let mut customer = tokio::io::stdin();
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                served.spawn(Arc::clone(&counter).attend(accepted?.0));
            }
            _ = customer.read_u8() => break,
        }
    }
    // What was asked of it is done, whether or not anybody waits for the answer.
    served.join_all().await;
    Ok(())
}

impl Counter {
    async fn attend(self: Arc<Self>, mut stream: TcpStream) {
        let answered = async {
            let request = Message::receive(&mut stream).await?;
            if let Some(response) = self.answer(&request).await? {
                response.send(&mut stream).await?;
            }
            io::Result::Ok(())
        };
        if let Err(error) = answered.await {
            tracing::debug!(%error, "a customer has left");
        }
    }

    /// The response to a request; none if it gets lost.
    async fn answer(&self, request: &Message) -> io::Result<Option<Message>> {
        let mut words = request.start.split(' ');
        let charge = match (words.next(), words.next().and_then(|path| path.strip_prefix("/charges"))) {
            (Some("POST"), Some("")) => {
                let key = request.header("idempotency-key");
                let (Some(key), Ok(Request { order, cents })) = (key, serde_json::from_slice(&request.body))
                else {
                    return Ok(Some(response("400 Bad Request", Vec::new())));
                };
                tokio::time::sleep(Duration::from_millis(5 + order % 16)).await;
                let charge = self.charges.book(key, order, cents)?;
                if self.loses_a_reply() {
                    return Ok(None);
                }
                Some(charge)
            }
            (Some("GET"), Some(path)) => self.charges.find(path.trim_start_matches('/'))?,
            _ => None,
        };
        Ok(Some(match charge {
            Some(charge) => response("200 OK", serde_json::to_vec(&charge)?),
            None => response("404 Not Found", Vec::new()),
        }))
    }

    fn loses_a_reply(&self) -> bool {
        let lose = |replies: u64| replies.checked_sub(1);
        self.replies_to_lose.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lose).is_ok()
    }
}

fn response(status: &str, body: Vec<u8>) -> Message {
    Message::new(format!("HTTP/1.1 {status}"), body)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    const CHARGE: &str = "POST /charges HTTP/1.1";

    /// What a customer is answered who asks for this, or has left before the answer.
    async fn ask(counter: &Arc<Counter>, request: Message, has_left: bool) -> io::Result<Option<Message>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mut customer = TcpStream::connect(listener.local_addr()?).await?;
        request.send(&mut customer).await?;
        let (stream, _) = listener.accept().await?;
        let customer = if has_left { None } else { Some(customer) };
        Arc::clone(counter).attend(stream).await;
        match customer {
            Some(mut customer) => Message::receive(&mut customer).await.map(Some),
            None => Ok(None),
        }
    }

    fn charge(key: &str) -> Message {
        let body = json!({ "order": 1001, "cents": 2400 }).to_string().into_bytes();
        Message::new(CHARGE.to_owned(), body).with("Idempotency-Key", key)
    }

    fn find(key: &str) -> Message {
        Message::new(format!("GET /charges/{key} HTTP/1.1"), Vec::new())
    }

    #[tokio::test]
    async fn a_charge_is_booked_whose_customer_has_left_or_whose_reply_gets_lost() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let charges = Charges::at(folder.path().join("charges.jsonl"));
        let counter = Arc::new(Counter { charges, replies_to_lose: AtomicU64::new(1) });
        let lost = ask(&counter, charge("a"), false).await.expect_err("no answer");
        assert_eq!(lost.kind(), io::ErrorKind::UnexpectedEof);
        assert!(ask(&counter, charge("b"), true).await?.is_none());
        for key in ["a", "b"] {
            let found = ask(&counter, find(key), false).await?.expect("an answer");
            let repeat = ask(&counter, charge(key), false).await?.expect("an answer");
            assert_eq!([&found.start, &repeat.start], ["HTTP/1.1 200 OK"; 2]);
            assert_eq!(found.body, repeat.body);
        }
        assert_eq!(counter.charges.count(&BTreeSet::from([1001]))?, 2);
        Ok(())
    }

    #[tokio::test]
    async fn what_is_no_charge_is_not_booked() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let charges = Charges::at(folder.path().join("charges.jsonl"));
        let counter = Arc::new(Counter { charges, replies_to_lose: AtomicU64::new(0) });
        let without_key = Message::new(CHARGE.to_owned(), charge("a").body);
        let without_body = Message::new(CHARGE.to_owned(), Vec::new()).with("Idempotency-Key", "a");
        for (request, status) in [
            (without_key, "400 Bad Request"),
            (without_body, "400 Bad Request"),
            (find("a"), "404 Not Found"),
        ] {
            let answer = ask(&counter, request, false).await?.expect("an answer");
            assert_eq!(answer.start, format!("HTTP/1.1 {status}"));
        }
        assert_eq!(counter.charges.count(&BTreeSet::from([1001]))?, 0);
        Ok(())
    }
}
