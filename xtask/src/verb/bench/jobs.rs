//! Writes job functions such as an application has, no two alike, and the same ones without the attribute.

mod function;
mod step;

use self::function::Function;

/// How many functions stand in one file.
const PER_FILE: usize = 20;

/// What is written into a crate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jobs {
    /// How many functions.
    pub(crate) count: usize,
    /// Whether they carry the attribute, and their keys the derive.
    pub(crate) annotated: bool,
    /// Whether a function calls them all, so that a linker keeps them.
    pub(crate) called: bool,
}

impl Jobs {
    /// The files of the crate: each module's name and text. Equal for an equal `self`, and the first files are equal for
    /// any count.
    pub(crate) fn modules(self) -> Vec<(String, String)> {
        let module = |first: usize| {
            let count = PER_FILE.min(self.count - first);
            (format!("area_{}", first / PER_FILE), self.module(first, count))
        };
        (0..self.count).step_by(PER_FILE).map(module).collect()
    }

    /// The crate's root, with these modules.
    pub(crate) fn root(self, modules: &[(String, String)]) -> String {
        let declarations = modules.iter().map(|(module, _)| format!("pub mod {module};\n"));
        let mut root: Vec<String> = declarations.collect();
        root.insert(0, "//! The jobs of an application.\n".to_owned());
        if self.called {
            root.push(MAIN_HEAD.to_owned());
            let idem = if self.annotated { "idem: idem.clone()" } else { "" };
            root.extend(modules.iter().map(|(module, _)| {
                format!(
                    "    {module}::all(&{module}::Service {{ client: Default::default(), \
                     tenant: Default::default(), limit: 1, {idem} }}, &mut tx).await;\n"
                )
            }));
            root.push("    Ok(())\n}\n".to_owned());
        }
        root.concat()
    }

    fn module(self, first: usize, count: usize) -> String {
        let mut module = Module { jobs: self, text: String::new(), calls: String::new() };
        let seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(first as u64 + 1);
        let mut dice = Dice(seed);
        module.both("//! One area of the application.\n#![allow(missing_docs)]\n");
        module.both(PREAMBLE);
        let functions: Vec<Function> =
            (first..first + count).map(|number| Function::draw(number, &mut dice)).collect();
        for function in functions.iter().filter(|function| !function.is_method()) {
            module.function(function);
        }
        module.both("impl Service {\n");
        for function in functions.iter().filter(|function| function.is_method()) {
            module.function(function);
        }
        module.both("}\n");
        if self.called {
            let calls = std::mem::take(&mut module.calls);
            module.both(
                "pub async fn all(service: &Service, tx: &mut sqlx::Transaction<'_, sqlx::Sqlite>) {\n",
            );
            module.both("let (client, order) = (&service.client, Order::default());\n");
            module.both(&calls);
            module.both("}\n");
        }
        module.text
    }
}

/// What the functions of one file work with. A line that begins with `@` is for the annotated alone.
const PREAMBLE: &str = r#"
use std::{collections::BTreeMap, time::Duration};
use serde::{Deserialize, Serialize};
@use idem_runtime::{Idem, KeyPart, idempotent};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} is more than this account may spend")]
    TooMuch(u64),
    #[error("the provider said: {0}")]
    Provider(String),
    #[error("this is no number")]
    Number(#[from] std::num::ParseIntError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
@    #[error(transparent)]
@    Idem(#[from] idem_runtime::Error),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
@#[derive(KeyPart)]
pub struct AccountId(pub u64);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
@#[derive(KeyPart)]
pub struct RequestId(pub u128);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
@#[derive(KeyPart)]
pub struct Period {
    pub year: u16,
    pub month: u8,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Order {
    pub id: RequestId,
    pub account: AccountId,
    pub cents: u64,
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Summary {
    pub total: u64,
    pub notes: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Client {
    base: String,
    pages: BTreeMap<u64, Vec<u64>>,
}

impl Client {
    pub async fn get(&self, path: &str) -> Result<String, Error> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if path.is_empty() {
            return Err(Error::Provider(format!("{} has no such page", self.base)));
        }
        Ok(format!("{}{path}", self.base))
    }
    pub async fn post(&self, path: &str, cents: u64) -> Result<u64, Error> {
        let answer = self.get(path).await?;
        Ok(cents + answer.len() as u64)
    }
    pub fn page(&self, number: u64) -> Result<&[u64], Error> {
        self.pages.get(&number).map(Vec::as_slice).ok_or_else(|| Error::Provider("no page".to_owned()))
    }
    pub fn fee(&self, cents: u64) -> u64 {
        if cents > 100_000 { 30 } else { self.pages.len() as u64 }
    }
    pub fn line(&self, cents: u64) -> String {
        format!("{}: {cents}", self.base)
    }
}

@#[derive(Debug)]
pub struct Service {
    pub client: Client,
    pub tenant: AccountId,
    pub limit: u64,
@    pub idem: Idem,
}
"#;

/// The program's beginning, up to the calls. Both programs open a database, through what the annotated one needs.
const MAIN_HEAD: &str = r#"
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let idem = idem_runtime::Idem::connect("memory:").await?;
    idem.install()?;
    let pool = sqlx::SqlitePool::connect("sqlite::memory:").await?;
    let mut tx = pool.begin().await?;
"#;

struct Module {
    jobs: Jobs,
    text: String,
    calls: String,
}

impl Module {
    fn both(&mut self, text: &str) {
        for line in text.lines() {
            match line.strip_prefix('@') {
                Some(line) if self.jobs.annotated => self.text.push_str(line),
                Some(_) => continue,
                None => self.text.push_str(line),
            }
            self.text.push('\n');
        }
    }

    fn function(&mut self, function: &Function) {
        if let Some(receipt) = function.receipt() {
            // An `impl` block holds no type.
            let at = if function.is_method() { self.text.rfind("impl Service {") } else { None };
            self.text.insert_str(at.unwrap_or(self.text.len()), &receipt);
        }
        self.both(&format!("@{}", function.attribute()));
        self.both(&function.signature());
        self.both(&format!("{{\n    {}", function.body()));
        self.both("}");
        self.calls.push_str(&function.call());
    }
}

/// Draws the same numbers each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % end as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(count: usize, annotated: bool) -> String {
        let modules = Jobs { count, annotated, called: false }.modules();
        modules.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn plain_and_annotated_differ_by_what_is_the_librarys() {
        let ours = ["idempotent(", "KeyPart", "Idem", "derive(Debug)]"];
        let without = |text: String| -> Vec<String> {
            let lines = text.lines().filter(|line| !ours.iter().any(|ours| line.contains(ours)));
            // The error's variant has `transparent` above it, as the database's has.
            lines.filter(|line| !line.contains("transparent")).map(|line| line.trim().to_owned()).collect()
        };
        assert_eq!(without(text(40, false)), without(text(40, true)));
        assert_eq!(text(40, true).matches("#[idempotent(").count(), 40);
        assert!(!text(40, false).contains("idem"));
    }

    #[test]
    fn fewer_functions_are_the_first_of_more() {
        assert!(text(100, true).starts_with(&text(60, true)));
    }
}
