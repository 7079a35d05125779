//! Idem.
