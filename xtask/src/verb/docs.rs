use std::fs;

use anyhow::{Result, ensure};
use clap::Args;

use crate::{document, program};

/// Writes the compile errors that the documents show anew, from the cases of `tests/ui`.
#[derive(Args, Debug)]
pub(crate) struct Docs {
    /// Writes nothing; it is an error if there is anything to write.
    #[arg(long)]
    check: bool,
}

impl Docs {
    pub(crate) fn run(&self) -> Result<()> {
        if self.check {
            return check();
        }
        for path in document::PATHS {
            let file = program::workspace().join(path);
            let text = fs::read_to_string(&file)?;
            fs::write(&file, document::refreshed(&text, &program::workspace())?)?;
        }
        Ok(())
    }
}

pub(crate) fn check() -> Result<()> {
    for path in document::PATHS {
        let text = fs::read_to_string(program::workspace().join(path))?;
        let current = text == document::refreshed(&text, &program::workspace())?;
        ensure!(current, "{path} is out of date: `cargo xtask docs` writes it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_is_shown_as_its_files_are() {
        let workspace = tempfile::tempdir().expect("a folder");
        let folder = workspace.path().join("tests/ui/key");
        fs::create_dir_all(&folder).expect("a folder");
        let source = "#![allow(unused)]\n\nuse idem_runtime::Error;\n\nstruct Order;\n\nfn job() {}\n\nfn main() {\n    \
                      job();\n}\n";
        let stderr =
            "error: no\n       not so\n  --> ui/key/a.rs:13:20\n   |\n13 | fn job() {}\n   |    ^^^ 5 | 6\n";
        fs::write(folder.join("a.rs"), source).expect("a source");
        fs::write(folder.join("a.stderr"), stderr).expect("a message");
        let shown = "before\n<!-- ui: key/a -->\n```rust,ignore\nstruct Order;\n\nfn job() {}\n```\n\n```text\nerror: no\n       \
                     not so\n   | fn job() {}\n   |    ^^^ 5 | 6\n```\n<!-- end -->\nbehind\n";
        for document in ["before\n<!-- ui: key/a -->\n<!-- end -->\nbehind\n", shown] {
            assert_eq!(document::refreshed(document, workspace.path()).expect("a document"), shown);
        }
        for broken in ["<!-- ui: key/a", "<!-- ui: key/a -->", "<!-- ui: key/b --><!-- end -->"] {
            assert!(document::refreshed(broken, workspace.path()).is_err(), "{broken}");
        }
    }
}
