//! What a server of one's own needs to be nobody else's: a password that nobody knows, a port that nobody has.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Result;

/// A port that was free a moment ago may be taken: how often to try another one.
pub(super) const ATTEMPTS: usize = 3;

pub(super) fn password() -> Result<String> {
    Ok(format!("{:032x}", u128::from(getrandom::u64()?) << 64 | u128::from(getrandom::u64()?)))
}

pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
