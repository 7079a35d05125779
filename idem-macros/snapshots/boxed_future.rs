#[idempotent(key = "job:<id>", on_stale = probe(Self::was_done), on_error = Self::judge)]
fn job<'a, 'async_trait>(&'a self, id: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'async_trait>>
where
    'a: 'async_trait,
{
    Box::pin(async move { Ok(id) })
}

// expands to

fn job<'a, 'async_trait>(
    &'a self,
    id: u64,
) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'async_trait>>
where
    'a: 'async_trait,
{
    ::std::boxed::Box::pin(async move {
        let __idem_call = ::idem_runtime::__private::stored::<Result<u64, Error>>(
            ::idem_runtime::__private::Ticket::new({
                static JOB: ::idem_runtime::__private::Job = ::idem_runtime::__private::Job::lock_first(
                    "job",
                    &["job:", ""],
                    ::core::module_path!(),
                    ::core::file!(),
                    ::core::line!(),
                )
                .on_stale(::idem_runtime::__private::OnStale::Probe);
                ::idem_runtime::__private::inventory::submit! { ::idem_runtime::__private::JobRef(&JOB) }
                &JOB
            })
            .part(match &id {
                __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
            }),
        )
        .describe(|__idem_error| ::idem_runtime::__private::Describe(__idem_error).idem_text());
        let __idem_none = __idem_call.no_answer();
        let __idem_call = ::idem_runtime::__private::admit(__idem_call, async || {
            if let ::core::option::Option::Some(__idem_answer) = __idem_none() {
                return __idem_answer;
            }
            Self::was_done(&self, &id).await
        })
        .await;
        return ::idem_runtime::__private::finish_classified(
            __idem_call,
            |__idem_error: &_| Self::judge(__idem_error),
            async move || -> Result<u64, Error> {
                if let ::core::option::Option::Some(__idem_ret) =
                    ::idem_runtime::__private::none::<Result<u64, Error>>()
                {
                    return __idem_ret;
                }
                ::idem_runtime::__private::built(
                    move || -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>> {
                        Box::pin(async move { Ok(id) })
                    },
                )
                .await
            },
        )
        .await;
    })
}
