//! `#[idempotent]`, `phase!` and `#[derive(KeyPart)]`. Use them through `idem-runtime`, which re-exports them and holds what their
//! expansions call.
//!
//! The attribute is read (`args`, `function`, `template`), every check is made in one place (`plan`), and what is left
//! cannot fail (`expand`). On a mistake the function is emitted as it was written, beside one error for each mistake.

mod args;
mod errors;
mod expand;
mod function;
mod key_fn;
mod key_part;
#[cfg(test)]
mod mistakes;
mod phase;
mod plan;
mod probe;
mod template;
mod transaction;

use args::Args;
use errors::Errors;
use function::Function;
use plan::Plan;
use proc_macro::TokenStream;

/// Makes a job idempotent: a repeat of it gets the recorded result instead of a second run.
///
/// ```text
/// #[idempotent(key = "billing:<user_id>:<month>", mode = "lock_first")]
/// async fn charge_user(user_id: u64, month: Month, amount: Money) -> Result<Receipt, BillingError> { … }
/// ```
///
/// The function keeps its signature, docs, attributes, visibility and generics. It is async or sync, free or a
/// method, in a trait implementation, or under `#[async_trait]` (the attribute goes on the method), and returns
/// `Result<T, E>`, through any alias, with `E: From<idem_runtime::Error>`.
///
/// | argument | values | default |
/// | --- | --- | --- |
/// | `key` | a template: fixed text and `<parameter>` or `<parameter.field>` | required |
/// | `mode` | `"lock_first"`, `"record_after"`, `"transactional"` | `"lock_first"` |
/// | `stale_after` | a duration: the lease (`lock_first` only) | `"60s"` |
/// | `heartbeat` | `true`, `false`: renew the lease while the job runs (`lock_first` only) | `true` |
/// | `on_stale` | `"alert"`, `"retry"`, `probe(path)` (`lock_first` only) | `"alert"` |
/// | `max_takeovers` | after so many takeovers of one key, alert all the same (with `"retry"` and `probe`) | `5` |
/// | `on_error` | `"hold"`, `"release"`, `"by_mark"`, `"record"`, or the path of a `fn(&E) -> OnError` | `"hold"` with `lock_first` and `"alert"` or `probe`, else `"release"` |
/// | `on_busy` | `"error"`, `"wait"` | `"error"`; `transactional`: `"wait"` |
/// | `wait_for` | a duration, with `on_busy = "wait"` | `"10s"` |
/// | `ttl` | a duration, or `"forever"`: how long a completed key suppresses repeats | `"forever"`; `record_after`: `"24h"` |
/// | `fingerprint` | `(a, b.c)`: what must be equal under an equal key | none |
/// | `replay` | `true`, `false`: whether repeats get the stored `T` or `Error::AlreadyCompleted` | `true` |
/// | `tx` | the parameter with the caller's transaction, `&mut` (`transactional` only) | `tx` |
/// | `idem` | an expression that gives `&Idem` | the installed global |
/// | `name` | the job's label in rows, logs and metrics | `crate::module::function` |
/// | `key_fn` | a name: makes a function that renders the key without running the job | none |
/// | `singleton` | one key for all calls is meant | |
/// | `allow_volatile(p)` | `<p>` is meant, though its name says that it changes with each delivery | |
/// | `allow_short_ttl` | the ttl is meant, though it is shorter than the period in the key | |
/// | `allow_overlap(path)` | the job at `path` is meant to share keys with this one | |
/// | `crate` | the path of the runtime crate | `::idem_runtime` |
///
/// A `transactional` job is an `async` function whose effect is rows in the database of the keys. Its parameter `tx` is
/// a `&mut sqlx::Transaction<'_, DB>`, or `&mut` that database's connection with a transaction open on it. The key is
/// claimed, the body runs and the key is completed in that transaction, under a savepoint; the body sees it under the
/// same name, and the caller commits it.
///
/// `on_stale = probe(path)` names a function that says, before anything runs again, whether the effect of an execution
/// that stopped half way happened. It is called with `&self` first, where the job has a receiver, and then with the
/// parameters that the key names, once each, in the function's order, by reference; it is `async` where the job is, and
/// answers with a `Probe<T>`, `T` being the job's own success value.
///
/// Durations are whole numbers of `s`, `m`, `h` or `d`: `"90s"`, `"24h"`.
///
/// `key_fn` makes a sibling of the function, which a trait implementation cannot hold.
#[proc_macro_attribute]
pub fn idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args.into(), &item.into()).into()
}

/// Runs a part of a job once, under a name of its own: a repeat of the job gets its result and goes on behind it.
///
/// ```text
/// let receipt = phase!("charge", on_stale = "alert", async { bank::charge(account, cents).await });
/// phase!("receipt", mode = "record_after", async { mail::send(&receipt).await });
/// ```
///
/// The name comes first: a string literal of lower-case letters, digits, `-` and `_`. The body comes last: an `async`
/// block, or in a synchronous job a closure without parameters. It gives a `Result`, whose `Ok` is the value of the
/// macro, and whose `Err` leaves the function that the macro stands in. Between them stand options:
///
/// | option | values | default |
/// | --- | --- | --- |
/// | `mode` | `"lock_first"`, `"record_after"`, `"transactional"` | `"lock_first"` |
/// | `stale_after` | a duration: the lease (`lock_first` only) | that of its job |
/// | `on_stale` | `"alert"`, `"retry"`, `probe(async \|\| …)` (`lock_first` only) | `"alert"` |
/// | `on_error` | `"hold"`, `"release"`, `"by_mark"`, `"record"`, or the path of a `fn(&E) -> OnError` | as for a job |
/// | `tx` | the variable with the transaction (`transactional` only) | required there |
/// | `each` | `<line.id>`: what tells one element of a loop from another | none |
///
/// A probe is a closure, or the path of a function, that is called without arguments and gives a `Probe<T>`, `T` being
/// the value of the phase; it is `async` where the body is.
///
/// The tokens begin with the path of the runtime: it is the macro of that crate that users call.
#[proc_macro]
pub fn phase(tokens: TokenStream) -> TokenStream {
    phase::phase(tokens.into()).into()
}

/// Implements `KeyPart`, so that a type's values can stand in a key.
///
/// A struct of one field writes that field; of several, all of them, joined by `,` and escaped within. An enum
/// of unit variants writes the variant's name, or what `#[key_part(rename = "…")]` on the variant says.
/// `#[key_part(display)]` on the type writes its `Display` text. `#[key_part(crate = path)]` names the runtime
/// crate where it is renamed or re-exported.
#[proc_macro_derive(KeyPart, attributes(key_part))]
pub fn derive_key_part(item: TokenStream) -> TokenStream {
    key_part::derive(item.into()).into()
}

fn attribute(args: proc_macro2::TokenStream, item: &proc_macro2::TokenStream) -> proc_macro2::TokenStream {
    let mut errors = Errors::default();
    let args = Args::parse(args, &mut errors);
    let function = Function::parse(item.clone(), &mut errors);
    let plan = Plan::new(args, function, &mut errors);
    match (errors.finish(), plan) {
        (Err(error), _) => errors::beside(item, &error),
        (Ok(()), Some(plan)) => expand::expand(&plan),
        (Ok(()), None) => item.clone(),
    }
}
