#[idempotent(key = "job:<id>", on_error = Self::judge)]
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
                );
                ::idem_runtime::__private::inventory::submit! { ::idem_runtime::__private::JobRef(&JOB) }
                &JOB
            })
            .part(match &id {
                __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
            }),
        )
        .describe(|__idem_error| ::idem_runtime::__private::Describe(__idem_error).idem_text());
        return ::idem_runtime::__private::run_classified(
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
