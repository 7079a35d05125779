use std::{
    env, io,
    net::SocketAddr,
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::Context as _;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

use crate::{Charge, http::Message};

/// A payment provider, as its customers see it: a server that they reach over a network, and that outlives them.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    asked: AtomicU64,
    /// It leaves when this is dropped, or its customer dies.
    _process: Child,
}

impl Provider {
    /// Opens a provider: a process of its own, this program once more, who is told by these arguments to
    /// [serve](crate::serve).
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub async fn open(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0); // Ctrl-C at the terminal is not meant for it
        let mut process = command.spawn().context("no provider can be started")?;
        let mut said = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut said).await?;
        }
        let address = said.trim().parse().context("the provider does not say where it is")?;
        Ok(Self { address, asked: AtomicU64::new(0), _process: process })
    }

    /// Charges an order. With a key that it was given before, it answers with that charge.
    ///
    /// # Errors
    ///
    /// Nobody knows whether the charge happened.
    pub async fn charge(&self, order: u64, cents: u64, key: &str) -> io::Result<Charge> {
        let body = json!({ "order": order, "cents": cents }).to_string().into_bytes();
        let request = Message::new("POST /charges HTTP/1.1".to_owned(), body).with("idempotency-key", key);
        let response = self.send(request).await?;
        found(&response)?.ok_or_else(|| refused(&response))
    }

    /// The charge that it was given this key for, if there is one.
    ///
    /// # Errors
    ///
    /// It does not say.
    pub async fn find(&self, key: &str) -> io::Result<Option<Charge>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let request = Message::new(format!("GET /charges/{key} HTTP/1.1"), Vec::new());
        found(&self.send(request).await?)
    }

    /// How often it was asked about a charge.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    async fn send(&self, request: Message) -> io::Result<Message> {
        let mut stream = TcpStream::connect(self.address).await?;
        request.with("host", &self.address.to_string()).send(&mut stream).await?;
        Message::receive(&mut stream).await
    }
}

fn found(response: &Message) -> io::Result<Option<Charge>> {
    match response.start.split(' ').nth(1) {
        Some("200") => Ok(Some(serde_json::from_slice(&response.body)?)),
        Some("404") => Ok(None),
        _ => Err(refused(response)),
    }
}

fn refused(response: &Message) -> io::Error {
    io::Error::other(format!("the provider answers `{}`", response.start))
}
