#[idempotent(
    key = "<<all>>",
    singleton,
    name = "every",
    stale_after = "15m",
    heartbeat = false,
    on_stale = "retry",
    max_takeovers = 3,
    on_error = "by_mark",
    on_busy = "wait",
    ttl = "1d",
    allow_overlap(crate::other::job, last),
    crate = crate::jobs
)]
fn every() -> Result<(), Error> {
    phase!("one", || Ok(()));
    Ok(())
}

// expands to

fn every() -> Result<(), Error> {
    let __idem_call =
        crate::jobs::__private::stored::<Result<(), Error>>(crate::jobs::__private::Ticket::new({
            static JOB: crate::jobs::__private::Job = crate::jobs::__private::Job::lock_first(
                "every",
                &["<all>"],
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
            )
            .label("every")
            .stale_after(900)
            .without_heartbeat()
            .on_stale(crate::jobs::__private::OnStale::Retry)
            .max_takeovers(3)
            .on_error(crate::jobs::__private::ErrorRule::ByMark)
            .wait(10)
            .ttl(86400)
            .phased()
            .allow_overlap(&["crate::other::job", "last"]);
            crate::jobs::__private::inventory::submit! { crate::jobs::__private::JobRef(&JOB) }
            &JOB
        }))
        .describe(|__idem_error| crate::jobs::__private::Describe(__idem_error).idem_text());
    return crate::jobs::__private::run_sync(__idem_call, move || -> Result<(), Error> {
        phase!("one", || Ok(()));
        Ok(())
    });
}
