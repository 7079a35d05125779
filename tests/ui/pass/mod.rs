//! What must compile, and then run once: each file a family of shapes, with the store in memory.

mod arguments;
mod associated_types;
mod async_free;
mod async_trait_generic;
mod async_trait_local;
mod async_trait_methods;
mod attributes;
mod bank;
mod bounded_lints;
mod boxed_errors;
mod boxed_futures;
mod callable_arguments;
mod classified_errors;
mod coercions;
mod conditional;
mod const_generics;
mod control_flow;
mod deep_calls;
mod derived_key_parts;
mod diverging;
mod documented;
mod dropped_arguments;
mod error_types;
mod expansion_names;
mod generic_receivers;
mod generics;
mod glob_import;
mod handles;
mod higher_ranked;
mod impl_lifetimes;
mod impl_trait_arguments;
mod inferred;
mod inner_attributes;
mod inner_impls;
mod instrumented;
mod key_functions;
mod keyword_fields;
mod labels;
mod large_futures;
mod lifetimes;
mod macro_fragments;
mod macro_layers;
mod macro_made;
mod methods;
mod moved_parameters;
mod mutable_parameters;
mod mutual_recursion;
mod nested_functions;
mod nested_items;
mod not_send;
mod our_names;
mod own_extensions;
mod own_items;
mod own_macros;
mod own_results;
mod owned_cows;
mod patterns;
mod periods;
mod phases_async;
mod phases_made;
mod phases_probes;
mod phases_sync;
mod phases_transactional;
mod probes;
mod provided_methods;
mod raw_identifiers;
mod re_exports;
mod recursion;
mod renamed_crate;
mod same_names;
mod send_futures;
mod shadowed_names;
mod smart_receivers;
mod spawnable_methods;
mod spawned;
// A library of the older edition holds it too, where its items can be reached.
#[allow(unreachable_pub, dead_code)]
mod strict_lints;
mod sync_free;
mod templates;
mod test_attributes;
mod trait_methods;
mod transactional;
mod transactional_methods;
mod unawaited;
mod unstored_results;
mod visibilities;
mod where_clauses;

use std::{fmt::Debug, sync::OnceLock};

use idem_runtime::{Idem, Outcome, current, with_outcome, with_outcome_sync};

/// The runtime under another path.
mod facade {
    pub(crate) use idem_runtime::*;
}

/// A store for these shapes alone, so that no other test's installed one matters.
fn memory() -> &'static Idem {
    static IDEM: OnceLock<Idem> = OnceLock::new();
    IDEM.get_or_init(|| {
        let connect = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(Idem::connect("memory:")).expect("a store in memory")
        };
        std::thread::spawn(connect).join().expect("a thread to connect on")
    })
}

/// Calls twice: the first call runs the body, the second gets its result.
async fn once<T: PartialEq + Debug, E: Debug>(call: impl AsyncFn() -> Result<T, E>) -> T {
    let (first, outcome) = with_outcome(call()).await;
    assert_eq!(outcome, Some(Outcome::Executed), "{first:?}");
    let (second, outcome) = with_outcome(call()).await;
    assert_eq!(outcome, Some(Outcome::Replayed), "{second:?}");
    let (first, second) = (first.expect("an executed result"), second.expect("a replayed result"));
    assert_eq!(first, second);
    first
}

/// [`once`] for a sync job.
fn once_sync<T: PartialEq + Debug, E: Debug>(call: impl Fn() -> Result<T, E>) -> T {
    let (first, outcome) = with_outcome_sync(&call);
    assert_eq!(outcome, Some(Outcome::Executed), "{first:?}");
    let (second, outcome) = with_outcome_sync(&call);
    assert_eq!(outcome, Some(Outcome::Replayed), "{second:?}");
    let (first, second) = (first.expect("an executed result"), second.expect("a replayed result"));
    assert_eq!(first, second);
    first
}

/// The key of the job whose body asks.
fn this_key() -> String {
    current().key().to_string()
}

fn is_send<T: Send>(value: T) -> T {
    value
}
