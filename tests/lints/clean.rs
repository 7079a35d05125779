//! Jobs in a crate that denies and forbids what it can: no lint may find a fault in what the attribute writes.

#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unused_qualifications,
    rust_2018_idioms,
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    clippy::implicit_return
)]
#![forbid(unsafe_code, clippy::unwrap_used)]
// What `implicit_return` asks for.
#![allow(clippy::needless_return)]

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, sync::PoisonError, sync::RwLock};

use idem_runtime::{Error, Idem, Key, KeyPart, OnError, Probe, Stored, Transact, idempotent, phase};

/// A month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, KeyPart)]
pub struct Month {
    year: u16,
    month: u8,
}

/// A plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, KeyPart)]
pub enum Plan {
    /// For nothing.
    Free,
    /// For money.
    #[key_part(rename = "paid")]
    Paid,
}

/// 1. Free and asynchronous.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:charge:<user_id>:<month>", fingerprint = (cents), key_fn = charge_key)]
pub async fn charge(user_id: u64, month: Month, cents: u64) -> Result<u64, Error> {
    later().await;
    return Ok(user_id + cents + u64::from(month.year));
}

/// 2. Free and synchronous.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:add:<id>", key_fn = add_key)]
pub fn add(id: u64, more: u64) -> Result<u64, Error> {
    return Ok(id + more);
}

/// 3. With nothing to tell.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:mail:<plan>", mode = "record_after", ttl = "2h", on_error = judge)]
pub async fn mail(plan: Plan) -> Result<(), Error> {
    later().await;
    if plan == Plan::Free {
        return Ok(());
    }
    return Key::from_text("").map(drop);
}

const fn judge(_: &Error) -> OnError {
    return OnError::Release;
}

/// 4. With branches.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:branches:<id>", on_stale = "retry", max_takeovers = 3)]
pub fn branches(id: u64) -> Result<u64, Error> {
    return if id > 1 { Ok(id) } else { Ok(0) };
}

/// 5. With a match as its tail.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:matched:<id>")]
pub async fn matched(id: u64, name: Option<&str>) -> Result<String, Error> {
    later().await;
    return match name {
        Some("") => Ok(id.to_string()),
        Some(name) => Ok(name.to_owned()),
        None => Ok(String::new()),
    };
}

/// 6. Generic.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:generic:<id>", key_fn = generic_key)]
pub async fn generic<T, V>(id: T, value: V) -> Result<V, Error>
where
    T: KeyPart + Send + Sync,
    V: Stored + Send,
{
    later().await;
    return Ok(value);
}

/// 7. With a parameter that changes.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:mutable:<id>")]
pub async fn mutable(id: u64, mut list: Vec<u64>) -> Result<Vec<u64>, Error> {
    list.push(id);
    later().await;
    return Ok(list);
}

/// 8. With a parameter whose field changes.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:field:<month.year>:<month.month>", mode = "record_after", ttl = "forever")]
pub fn field(mut month: Month) -> Result<u16, Error> {
    month.year = 1999;
    return Ok(month.year);
}

/// 9. With borrowed parameters.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:borrowed:<name>")]
pub async fn borrowed(name: &str, list: &[u64], out: &mut Vec<u64>) -> Result<usize, Error> {
    out.extend(list);
    later().await;
    return Ok(out.len() + name.len());
}

/// 10. With a lifetime that is named.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:named:<id>", replay = false)]
pub fn named<'a>(id: u64, left: &'a str, right: &'a str) -> Result<&'a str, Error> {
    return Ok(if id == 0 { left } else { right });
}

/// 11. With patterns.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:patterns:<id>")]
pub fn patterns(id: u64, (left, _): (u64, u64), Month { year, .. }: Month) -> Result<u64, Error> {
    return Ok(id + left + u64::from(year));
}

/// 12. With `impl Trait`.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:impl_trait:<id>")]
pub async fn impl_trait(id: impl KeyPart + Send + Sync, name: impl Into<String> + Send) -> Result<String, Error> {
    later().await;
    return Ok(name.into());
}

/// 13. With statements of every kind before its end.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:statements:<id>")]
pub async fn statements(id: u64, names: Cow<'static, str>) -> Result<BTreeMap<String, u64>, Error> {
    use core::iter::once;

    const MORE: u64 = 3;

    let mut map = BTreeMap::new();
    for name in names.split(',') {
        if name.is_empty() {
            continue;
        }
        map.extend(once((name.to_owned(), id + MORE)));
        later().await;
    }
    return Ok(map);
}

/// A service.
#[derive(Debug, Clone)]
pub struct Service {
    idem: Idem,
    tenant: String,
    count: u64,
    shared: Arc<RwLock<u64>>,
}

impl Service {
    /// 14. A method.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "clean:method:<self.tenant>:<id>", idem = self.idem, key_fn = method_key)]
    pub async fn method(&self, id: u64) -> Result<u64, Error> {
        later().await;
        return Ok(id + self.count);
    }

    /// 15. One that changes its type.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "clean:exclusive:<self.tenant>:<id>", idem = self.idem)]
    pub fn exclusive(&mut self, id: u64) -> Result<u64, Error> {
        self.count += id;
        return Ok(self.count);
    }

    /// 16. One that consumes it.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "clean:owned:<self.tenant>", idem = self.idem)]
    pub async fn owned(mut self) -> Result<u64, Error> {
        self.count += 1;
        later().await;
        return Ok(self.count);
    }

    /// 17. One of a shared service.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "clean:arc:<self.tenant>", idem = self.idem)]
    pub async fn arc(self: Arc<Self>) -> Result<u64, Error> {
        later().await;
        let count = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        return Ok(*count);
    }
}

/// What a service does.
pub trait Work {
    /// 18. Provided.
    ///
    /// # Errors
    ///
    /// When it is refused.
    #[idempotent(key = "clean:provided:<id>")]
    fn provided(&self, id: u64) -> Result<u64, Error> {
        return Ok(id + self.count());
    }

    /// Required.
    fn count(&self) -> u64;

    /// Required, and a job where it is implemented.
    ///
    /// # Errors
    ///
    /// When it is refused.
    fn required(&self, id: u64) -> impl Future<Output = Result<u64, Error>> + Send;
}

impl Work for Service {
    fn count(&self) -> u64 {
        return self.count;
    }

    /// 19. Of a trait's.
    #[idempotent(key = "clean:required:<self.tenant>:<id>", idem = self.idem)]
    async fn required(&self, id: u64) -> Result<u64, Error> {
        later().await;
        return Ok(id + self.count);
    }
}

/// 20. Made by a macro.
macro_rules! made {
    ($(#[$meta:meta])* $name:ident($id:ident: $ty:ty), $key:literal, $body:block) => {
        $(#[$meta])*
        #[idempotent(key = $key)]
        pub async fn $name($id: $ty) -> Result<$ty, Error> $body
    };
}

made! {
    /// By a macro.
    ///
    /// # Errors
    ///
    /// When it is refused.
    made(id: u64), "clean:made:<id>", {
        later().await;
        return Ok(id);
    }
}

/// 21. Of phases.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:phases:<id>", on_stale = "retry")]
pub async fn phases(id: u64, lines: Vec<Month>) -> Result<u64, Error> {
    let charged = phase!("charge", on_stale = "alert", async {
        later().await;
        return Ok(id);
    });
    phase!("mail", mode = "record_after", on_error = judge, async move {
        later().await;
        return Ok(());
    });
    let mut sum = charged;
    for line in lines {
        let month = phase!("line", each = <line.month>, async { return Ok(u64::from(line.month)) });
        sum += month;
        phase!("counted", each = <sum>, on_stale = probe(async || find(sum).await), async {
            sum += 1;
            return Ok(sum);
        });
    }
    phase!("found", stale_after = "30s", on_stale = probe(find_none), on_error = judge, async { return Ok(0) });
    return Ok(sum);
}

async fn find(id: u64) -> Probe<u64> {
    later().await;
    return Probe::Happened(id);
}

async fn find_none() -> Probe<u64> {
    later().await;
    return Probe::DidNotHappen;
}

/// 22. Of phases, and synchronous.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:sync_phases:<id>")]
pub fn sync_phases(id: u64) -> Result<u64, Error> {
    let one = phase!("one", || return number());
    let two = phase!("two", on_error = judge, move || {
        return Ok(id);
    });
    let three = phase!("three", on_stale = probe(none), || return number());
    return Ok(one + two + three);
}

fn number() -> Result<u64, Error> {
    return Key::from_text("one").map(|key| return key.as_str().len() as u64);
}

const fn none() -> Probe<u64> {
    return Probe::Unknown;
}

/// 23. Of phases in its transaction, one of which looks at it.
///
/// # Errors
///
/// When it is refused.
#[idempotent(key = "clean:posts:<id>", mode = "transactional")]
pub async fn posts<X: Transact>(id: u64, tx: &mut X) -> Result<u64, Error> {
    phase!("first", mode = "transactional", tx = tx, async move { return Ok(size_of_val(tx)) });
    phase!("second", mode = "transactional", tx = tx, on_error = judge, async { return Ok(()) });
    return Ok(id);
}

async fn later() {
    core::future::ready(()).await;
}
