//! User names that equal the expansion's, or could.

#![allow(clippy::too_many_arguments)]

use idem_runtime::{Error, idempotent};

use super::{memory, once, once_sync};

const JOB: u8 = 1;

#[allow(non_upper_case_globals, dead_code)]
const call: u8 = 2;

#[allow(unused_macros)]
macro_rules! format {
    ($($t:tt)*) => {
        compile_error!("the user's own `format!` was expanded")
    };
}
#[allow(unused_macros)]
macro_rules! concat {
    ($($t:tt)*) => {
        compile_error!("the user's own `concat!` was expanded")
    };
}
#[allow(unused_macros)]
macro_rules! line {
    () => {
        compile_error!("the user's own `line!` was expanded")
    };
}
#[allow(unused_macros)]
macro_rules! module_path {
    () => {
        compile_error!("the user's own `module_path!` was expanded")
    };
}

#[idempotent(key = "our_names:first:<key>:<job>", fingerprint = (stored, part), idem = memory())]
async fn first(
    key: u8,
    job: u8,
    result: u8,
    store: u8,
    pool: u8,
    conn: u8,
    tx: u8,
    token: u8,
    stored: u8,
    part: u8,
) -> Result<u8, Error> {
    Ok(key + job + result + store + pool + conn + tx + token + stored + part + JOB)
}

#[idempotent(key = "our_names:second:<lease>", idem = memory())]
async fn second(
    lease: u8,
    now: u8,
    args: u8,
    ctx: u8,
    fut: u8,
    err: u8,
    error: u8,
    inner: u8,
    body: u8,
    guard: u8,
    idem: u8,
    out: u8,
) -> Result<u8, Error> {
    Ok(lease + now + args + ctx + fut + err + error + inner + body + guard + idem + out)
}

#[idempotent(key = "our_names:third:<__idem_call>", idem = memory())]
#[allow(clippy::used_underscore_binding)]
async fn third(__idem_call: u8, __idem_ret: u8, __idem_error: u8) -> Result<u8, Error> {
    Ok(__idem_call + __idem_ret + __idem_error)
}

mod left {
    use super::{Error, idempotent, memory};

    #[idempotent(key = "our_names:left:<id>", idem = memory())]
    pub(super) fn run(id: u8) -> Result<u8, Error> {
        Ok(id)
    }
}

mod right {
    use super::{Error, idempotent, memory};

    #[idempotent(key = "our_names:right:<id>", idem = memory())]
    pub(super) fn run(id: u8) -> Result<u8, Error> {
        Ok(id + 1)
    }
}

#[tokio::test]
async fn no_name_clashes() {
    assert_eq!(once(async || first(1, 1, 1, 1, 1, 1, 1, 1, 1, 1).await).await, 11);
    assert_eq!(once(async || second(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1).await).await, 12);
    assert_eq!(once(async || third(1, 2, 3).await).await, 6);
    assert_eq!(once_sync(|| left::run(1)), 1);
    assert_eq!(once_sync(|| right::run(1)), 2);
}
