#[idempotent(key = "job:<idd>", heartbeat = 5)]
/// Unchanged.
fn job(id: u64) -> Result<(), Error> {
    #![allow(unused)]
    half typed.
}

// expands to

#[doc = " Unchanged."]
fn job(id: u64) -> Result<(), Error> {
    #![allow(unused)]
    half typed.
}
::core::compile_error! { "`heartbeat` is `true` or `false`" }
::core::compile_error! {
    "`idd` is not a parameter of `job`; did you mean `id`?\n\n    job:<idd>\n        ^^^^^\nwrite `job:<id>` (the parameters are `id`)"
}
