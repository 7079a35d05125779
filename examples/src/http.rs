use std::io;

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

/// A request or a response of HTTP/1.1, as far as a provider and its shop need it: one each way, then the connection is
/// closed.
#[derive(Debug)]
pub(crate) struct Message {
    /// The first line.
    pub(crate) start: String,
    headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn new(start: String, body: Vec<u8>) -> Self {
        Self { start, headers: Vec::new(), body }
    }

    pub(crate) fn with(mut self, header: &str, value: &str) -> Self {
        self.headers.push(format!("{header}: {value}"));
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.headers.iter().filter_map(|line| line.split_once(':'));
        headers.rev().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) async fn send(self, stream: &mut TcpStream) -> io::Result<()> {
        let length = self.body.len().to_string();
        let Self { start, headers, body } = self.with("content-length", &length).with("connection", "close");
        let head = format!("{start}\r\n{}\r\n\r\n", headers.join("\r\n"));
        stream.write_all(&[head.as_bytes(), &body].concat()).await?;
        stream.flush().await
    }

    pub(crate) async fn receive(stream: &mut TcpStream) -> io::Result<Self> {
        let mut stream = BufReader::new(stream);
        let mut message = Self::new(line(&mut stream).await?, Vec::new());
        loop {
            match line(&mut stream).await? {
                end if end.is_empty() => break,
                header => message.headers.push(header),
            }
        }
        let length = message.header("content-length").and_then(|length| length.parse().ok());
        message.body = vec![0; length.unwrap_or_default()];
        stream.read_exact(&mut message.body).await?;
        Ok(message)
    }
}

async fn line(stream: &mut BufReader<&mut TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the connection was closed without an answer",
        ));
    }
    Ok(line.trim_end().to_owned())
}
