#[idempotent(key = "job:<id>", on_error = Failure::judge)]
async fn job(id: u64) -> Result<u64, Failure> {
    Ok(id)
}

// expands to

async fn job(id: u64) -> Result<u64, Failure> {
    let __idem_call = ::idem_runtime::__private::stored::<Result<u64, Failure>>({
        static JOB: ::idem_runtime::__private::Job = ::idem_runtime::__private::Job::lock_first(
            "job",
            &["job:", ""],
            ::core::module_path!(),
            ::core::file!(),
            ::core::line!(),
        );
        ::idem_runtime::__private::inventory::submit! { ::idem_runtime::__private::JobRef(&JOB) }
        &JOB
    })
    .part(&id)
    .describe(|__idem_error| ::idem_runtime::__private::Describe(__idem_error).text());
    ::idem_runtime::__private::run_classified(
        __idem_call,
        |__idem_error: &_| Failure::judge(__idem_error),
        async move || -> Result<u64, Failure> {
            if let ::core::option::Option::Some(__idem_ret) =
                ::idem_runtime::__private::none::<Result<u64, Failure>>()
            {
                return __idem_ret;
            }
            { Ok(id) }
        },
    )
    .await
}
