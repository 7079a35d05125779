//! Functions that a `macro_rules!` writes, with a fragment of each kind: an invisible group around each.

use idem_runtime::{Error, idempotent, jobs};

use super::{is_send, memory, once, once_sync, this_key};

macro_rules! whole {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident<$life:lifetime, $param:ident: $bound:path>($id:ident: $ty:ty, $pat:pat => $pat_ty:ty)
            -> $ret:ty, $key:literal, $body:block
    ) => {
        $(#[$meta])*
        #[idempotent(key = $key, idem = memory())]
        $vis async fn $name<$life, $param: $bound + Send + 'static>(
            $id: $ty,
            $pat: $pat_ty,
            lent: &$life str,
            more: Option<$param>,
        ) -> $ret {
            tokio::task::yield_now().await;
            let _ = (lent, more);
            $body
        }
    };
}

whole! {
    /// Sums.
    #[must_use = "it was paid for"]
    pub(super) whole<'a, T: std::fmt::Debug>(id: u8, (left, right) => (u8, u8)) -> Result<u8, Error>,
        "macro_fragments:whole:<id>", {
            let sum = id + left + right;
            Ok(sum)
        }
}

macro_rules! of_expression {
    ($name:ident, $key:literal, $value:expr) => {
        #[idempotent(key = $key, idem = memory())]
        fn $name(id: u32) -> Result<u32, Error> {
            Ok(id * $value)
        }
    };
}

of_expression!(of_expression, "macro_fragments:expression:<id>", 1 + 2);

macro_rules! of_statements {
    ($name:ident, $key:literal, $statement:stmt; $tail:expr) => {
        #[idempotent(key = $key, idem = memory())]
        async fn $name(id: u32) -> Result<String, Error> {
            $statement;
            let _ = id;
            $tail
        }
    };
}

of_statements!(of_statements, "macro_fragments:statements:<id>", let more = 4; Ok(format!("{} {more}", this_key())));

macro_rules! of_block {
    ([$($option:tt)*] $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block) => {
        #[idempotent($($option)*, idem = memory())]
        $vis fn $name($($arg: $ty),*) -> $ret $body
    };
}

of_block! {
    [key = "macro_fragments:block:<a>:<b>", ttl = "2h", replay = true]
    fn of_block(a: &str, b: u8) -> Result<String, Error> {
        let _ = (a, b);
        if b > 1 {
            return Ok("early".to_owned());
        }
        Ok(this_key())
    }
}

macro_rules! of_item {
    ($item:item) => {
        $item
    };
}

of_item! {
    #[idempotent(key = "macro_fragments:item:<id>", idem = memory())]
    fn of_item(id: u8) -> Result<u8, Error> {
        Ok(id)
    }
}

macro_rules! of_idem {
    ($name:ident, $idem:expr, $judge:path) => {
        #[idempotent(key = "macro_fragments:idem:<id>", idem = $idem, on_error = $judge)]
        async fn $name(id: u8) -> Result<u8, Error> {
            Ok(id)
        }
    };
}

of_idem!(of_idem, memory(), judges::judge);

mod judges {
    pub(super) fn judge(_: &super::Error) -> idem_runtime::OnError {
        idem_runtime::OnError::Release
    }
}

macro_rules! boxed {
    ($name:ident, $ret:ty) => {
        #[idempotent(key = "macro_fragments:boxed:<id>", idem = memory())]
        fn $name(id: u8) -> std::pin::Pin<Box<dyn std::future::Future<Output = $ret> + Send>> {
            Box::pin(async move { Ok(id) })
        }
    };
}

boxed!(boxed, Result<u8, Error>);

macro_rules! boxed_whole {
    ($name:ident, $future:ty) => {
        #[idempotent(key = "macro_fragments:boxed_whole:<id>", idem = memory())]
        fn $name(id: u8) -> $future {
            Box::pin(async move { Ok(id) })
        }
    };
}

boxed_whole!(boxed_whole, std::pin::Pin<Box<dyn std::future::Future<Output = Result<u8, Error>> + Send>>);

macro_rules! method {
    ($type:ident { $field:ident }, $receiver:tt, $key:literal, $body:block) => {
        impl $type {
            #[idempotent(key = $key, idem = memory())]
            async fn run(&$receiver, id: u8) -> Result<String, Error> {
                let _ = (&$receiver.$field, id);
                $body
            }
        }
    };
}

struct Service {
    tenant: String,
}

method!(Service { tenant }, self, "macro_fragments:method:<self.tenant>:<id>", {
    let key = this_key();
    Ok(key)
});

#[tokio::test]
async fn functions_of_fragments_run_once() {
    assert_eq!(once(async || is_send(whole(1, (2, 3), "lent", Some(4_u8))).await).await, 6);
    assert_eq!(once_sync(|| of_expression(5)), 15);
    assert_eq!(once(async || of_statements(1).await).await, "macro_fragments:statements:1 4");
    assert_eq!(once_sync(|| of_block("a", 1)), "macro_fragments:block:a:1");
    assert_eq!(once_sync(|| of_block("a", 2)), "early");
    assert_eq!(once_sync(|| of_item(1)), 1);
    assert_eq!(once(async || of_idem(1).await).await, 1);
    assert_eq!(once(async || is_send(boxed(1)).await).await, 1);
    assert_eq!(once(async || is_send(boxed_whole(1)).await).await, 1);
    let service = Service { tenant: "acme".to_owned() };
    assert_eq!(once(async || service.run(1).await).await, "macro_fragments:method:acme:1");
}

#[test]
fn a_job_of_a_macro_is_named_by_its_function() {
    assert!(jobs::all().any(|job| job.path().ends_with("macro_fragments::whole")));
}
