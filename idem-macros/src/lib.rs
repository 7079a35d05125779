//! The macros of idem. Use them through `idem-runtime`, which re-exports them.
