use std::{fs, os::unix::process::CommandExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result};

/// Whom a server runs as: database servers refuse to be root.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account {
    /// Whoever runs this.
    Ours,
    Other {
        uid: u32,
        gid: u32,
    },
}

impl Account {
    /// Ourselves, or else the first of `preferred` that this machine knows.
    pub(crate) fn unprivileged(preferred: &[&str]) -> Result<Account> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Account::Ours);
        }
        let passwd = fs::read_to_string("/etc/passwd").context("cannot look up users")?;
        let found = preferred.iter().find_map(|name| Account::in_passwd(&passwd, name));
        found.with_context(|| format!("root may not run it, and there is no user {}", preferred.join(" or ")))
    }

    fn in_passwd(passwd: &str, name: &str) -> Option<Account> {
        let mut fields = passwd.lines().find(|line| line.split(':').next() == Some(name))?.split(':').skip(2);
        let uid = fields.next()?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account::Other { uid, gid })
    }

    /// The command, to be run as this account.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Account::Other { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Hands a file or folder over to this account.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        if let Account::Other { uid, gid } = self {
            std::os::unix::fs::chown(path, Some(uid), Some(gid))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n\
                      postgres-old:x:7:7::/:/bin/sh\n\
                      postgres:x:101:103:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n";
        let found = Account::in_passwd(passwd, "postgres");
        assert!(matches!(found, Some(Account::Other { uid: 101, gid: 103 })), "{found:?}");
        assert!(Account::in_passwd(passwd, "nobody").is_none());
    }
}
