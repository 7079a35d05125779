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
