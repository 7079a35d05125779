//! Any text, read as a key template.

#![no_main]

// A proc-macro crate exports its macros alone. The template needs nothing but `std`, so that it can be had here.
#[path = "../../idem-macros/src"]
mod macros {
    #[allow(dead_code, reason = "what the macros use")]
    pub(crate) mod template;
}

libfuzzer_sys::fuzz_target!(|source: &str| macros::template::laws::check(source));
