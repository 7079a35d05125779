#[idempotent(key = "job:<id>", mode = "transactional", tx = conn, on_busy = "error")]
async fn job(id: u64, #[expect(unused_mut)] mut conn: &mut Transaction<'_, Postgres>) -> Result<u64, Failure> {
    Ok(id)
}

// expands to

async fn job(id: u64, conn: &mut Transaction<'_, Postgres>) -> Result<u64, Failure> {
    let mut __idem_guard = ::idem_runtime::__private::tx_guard::<Transaction<'_, Postgres>>(&mut *conn);
    let __idem_call = ::idem_runtime::__private::stored::<Result<u64, Failure>>(
        ::idem_runtime::__private::Ticket::new({
            static JOB: ::idem_runtime::__private::Job = ::idem_runtime::__private::Job::transactional(
                "job",
                &["job:", ""],
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
            )
            .without_wait();
            ::idem_runtime::__private::inventory::submit! { ::idem_runtime::__private::JobRef(&JOB) }
            &JOB
        })
        .part(match &id {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        }),
    )
    .describe(|__idem_error| ::idem_runtime::__private::Describe(__idem_error).idem_text());
    let __idem_call = match ::idem_runtime::__private::tx_begin(__idem_call, &mut __idem_guard, || ()).await {
        ::core::ops::ControlFlow::Continue(__idem_answer) => __idem_answer,
        ::core::ops::ControlFlow::Break(__idem_answer) => return __idem_answer,
    };
    let __idem_call = {
        #[expect(unused_mut)]
        let mut conn = __idem_guard.tx();
        ::idem_runtime::__private::tx_body(__idem_call, async move || -> Result<u64, Failure> {
            if let ::core::option::Option::Some(__idem_ret) =
                ::idem_runtime::__private::none::<Result<u64, Failure>>()
            {
                return __idem_ret;
            }
            { Ok(id) }
        })
        .await
    };
    return ::idem_runtime::__private::tx_end(__idem_call, __idem_guard).await;
}
