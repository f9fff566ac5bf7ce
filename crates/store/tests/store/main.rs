//! Tests of the stores and the blobs as one program, which is linked once and starts one PostgreSQL
//! server. Tests that need a process of their own are beside this directory.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../cluster/mod.rs"]
mod cluster;
#[path = "../s3/mod.rs"]
mod s3;
#[path = "../suite/mod.rs"]
mod suite;

mod blobs;
mod conformance;
mod moving;
mod postgres;
mod sqlite;
