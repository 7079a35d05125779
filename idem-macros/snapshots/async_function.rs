#[idempotent(key = "billing:<user_id>:<month>", fingerprint = (amount))]
/// Charges a month.
pub async fn charge(user_id: u64, month: &str, amount: u64) -> Result<Receipt, Error> {
    #![allow(unused)]
    provider().charge(user_id, amount).await
}

// expands to

#[doc = " Charges a month."]
#[allow(unused)]
#[doc = ""]
#[doc = " Idempotent by the key `billing:<user_id>:<month>`: claimed before it runs (`lock_first`); a claim without a sign of life for `60s` needs review (`alert`). A completed key suppresses repeats forever."]
pub async fn charge(user_id: u64, month: &str, amount: u64) -> Result<Receipt, Error> {
    let __idem_call = ::idem_runtime::__private::stored::<Result<Receipt, Error>>(
        ::idem_runtime::__private::Ticket::new({
            static JOB: ::idem_runtime::__private::Job = ::idem_runtime::__private::Job::lock_first(
                "charge",
                &["billing:", ":", ""],
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
            );
            ::idem_runtime::__private::inventory::submit! { ::idem_runtime::__private::JobRef(&JOB) }
            &JOB
        })
        .part(match &user_id {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        })
        .part(match &month {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        })
        .fingerprint(&amount),
    )
    .describe(|__idem_error| ::idem_runtime::__private::Describe(__idem_error).idem_text());
    return ::idem_runtime::__private::run(__idem_call, async move || -> Result<Receipt, Error> {
        if let ::core::option::Option::Some(__idem_ret) =
            ::idem_runtime::__private::none::<Result<Receipt, Error>>()
        {
            return __idem_ret;
        }
        { provider().charge(user_id, amount).await }
    })
    .await;
}
