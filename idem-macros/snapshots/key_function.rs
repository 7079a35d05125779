#[idempotent(key = "job:<id>:<name>:<self.0>", key_fn = job_key)]
pub(crate) fn job<T: KeyPart, U>(&mut self, other: U, mut id: T, name: &mut String) -> Result<(), Error>
where
    U: Default,
{
    Ok(())
}

// expands to

pub(crate) fn job<T: KeyPart, U>(&mut self, other: U, mut id: T, name: &mut String) -> Result<(), Error>
where
    U: Default,
{
    let __idem_call = ::idem_runtime::__private::stored::<Result<(), Error>>(
        ::idem_runtime::__private::Ticket::new({
            static JOB: ::idem_runtime::__private::Job = ::idem_runtime::__private::Job::lock_first(
                "job",
                &["job:", ":", ":", ""],
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
            )
            .keyed_by_self();
            ::idem_runtime::__private::inventory::submit! { ::idem_runtime::__private::JobRef(&JOB) }
            &JOB
        })
        .part(match &id {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        })
        .part(match &name {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        })
        .part(match &self.0 {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        }),
    )
    .describe(|__idem_error| ::idem_runtime::__private::Describe(__idem_error).idem_text());
    return ::idem_runtime::__private::run_sync(__idem_call, move || -> Result<(), Error> { Ok(()) });
}
#[doc = " The key that `job` has for these arguments; nothing is run or looked up."]
#[doc = ""]
#[doc = " # Errors"]
#[doc = " If a value cannot stand in a key."]
pub(crate) fn job_key<T: KeyPart>(
    &self,
    id: &T,
    name: &String,
) -> ::core::result::Result<::idem_runtime::Key, ::idem_runtime::Error> {
    ::idem_runtime::__private::render(&["job:", ":", ":", ""])
        .part(::idem_runtime::__private::Part(&id).idem_again())
        .part(::idem_runtime::__private::Part(&name).idem_again())
        .part(::idem_runtime::__private::Part(&self.0).idem_again())
        .finish()
}
