//! The integration tests of the workspace, in one binary.

mod conformance;
