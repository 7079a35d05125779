#[idempotent(key = "mail:<self.tenant>:<order.customer.id>", mode = "record_after", idem = self.idem, replay = false)]
fn mail(&self, order: Order) -> Result<(), Error> {
    send(order)
}

// expands to

fn mail(&self, order: Order) -> Result<(), Error> {
    let __idem_call = ::idem_runtime::__private::unstored::<Result<(), Error>>(
        ::idem_runtime::__private::Ticket::new({
            static JOB: ::idem_runtime::__private::Job = ::idem_runtime::__private::Job::record_after(
                "mail",
                &["mail:", ":", ""],
                ::core::module_path!(),
                ::core::file!(),
                ::core::line!(),
            )
            .keyed_by_self();
            ::idem_runtime::__private::inventory::submit! { ::idem_runtime::__private::JobRef(&JOB) }
            &JOB
        })
        .part(match &self.tenant {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        })
        .part(match &order.customer.id {
            __idem_part => ::idem_runtime::__private::Part(__idem_part).idem_of(__idem_part),
        })
        .idem(&*&(self.idem)),
    )
    .describe(|__idem_error| ::idem_runtime::__private::Describe(__idem_error).idem_text());
    return ::idem_runtime::__private::run_sync(__idem_call, move || -> Result<(), Error> { send(order) });
}
