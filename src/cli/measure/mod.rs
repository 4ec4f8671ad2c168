//! `thinwire measure`: what each coding and level costs and saves on one's own data.
//!
//! The table and the policy go to standard output, progress to standard error. CPU time is the
//! thread's own, so that a busy machine does not change the advice.

mod advice;
mod fetch;
mod link;
mod messages;
mod progress;
mod sample;
mod table;
mod told;
mod trial;

use std::process::ExitCode;

use bytes::Bytes;
use clap::Args;

use link::Link;
use messages::{NoMessages, Way};
use progress::Progress;
use sample::Sample;
use trial::Trial;

/// What to measure.
#[derive(Args)]
pub(super) struct Measure {
    /// Files, or http:// and https:// URLs that are fetched once, each a body of its own
    #[arg(value_name = "FILE|URL", required_unless_present_any = ["websocket", "grpc"])]
    bodies: Vec<String>,
    /// WebSocket messages instead: one a line, a JSON string or any other text
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["bodies", "link"])]
    websocket: Option<String>,
    /// gRPC messages instead, uncompressed and each behind its prefix of 5 bytes, as on the wire
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bodies", "link", "websocket"])]
    grpc: Option<String>,
    /// The speed of the clients' link that the advice is for: 20mbit, 1gbit, 512kbit
    #[arg(long, value_name = "SPEED", default_value = "100mbit")]
    link: Link,
    /// Print one JSON object for scripts
    #[arg(long)]
    json: bool,
}

impl Measure {
    /// Exit status 1 where a body cannot be had.
    pub(super) fn run(&self) -> ExitCode {
        match (&self.websocket, &self.grpc) {
            (Some(name), _) => {
                self.messages(name, messages::from_lines(name), &Way::of_websocket())
            }
            (None, Some(name)) => self.messages(name, messages::from_frames(name), &Way::of_grpc()),
            (None, None) => self.bodies(),
        }
    }

    fn messages(
        &self,
        name: &str,
        messages: Result<Vec<Bytes>, NoMessages>,
        ways: &[Way],
    ) -> ExitCode {
        let messages = match messages {
            Ok(messages) => messages,
            Err(error) => return failed(&error),
        };
        let mut progress = Progress::new(ways.len());
        let mut all = Vec::new();
        for way in ways {
            progress.begins(&way.name());
            let tried = match way.try_on(&messages) {
                Ok(tried) => tried,
                Err(error) => {
                    progress.clear();
                    return failed(&error);
                }
            };
            let us = tried.each.as_secs_f64() * 1e6;
            progress.ended(&format!("{}: {us:.1} us a message", way.name()));
            all.push(tried);
        }
        progress.clear();
        if self.json {
            let report = told::json(name, messages.len(), &all);
            super::print(&format!("{report:#}"))
        } else {
            super::print(told::text(name, messages.len(), &all).trim_end())
        }
    }

    fn bodies(&self) -> ExitCode {
        let mut samples = Vec::new();
        for name in &self.bodies {
            match Sample::read(name) {
                Ok(sample) => samples.push(sample),
                Err(error) => return failed(&error),
            }
        }
        let recipes = trial::recipes();
        let mut progress = Progress::new(recipes.len());
        let mut trials = Vec::new();
        for recipe in recipes {
            progress.begins(&format!("{} {}", recipe.coding, recipe.effort));
            match Trial::of(recipe, &samples) {
                Ok(trial) => {
                    let ms = trial.cpu.as_secs_f64() * 1e3;
                    let (coding, level, bytes) = (trial.coding, trial.level, trial.coded);
                    progress.ended(&format!("{coding} {level}: {ms:.2} ms, {bytes} bytes"));
                    trials.push(trial);
                }
                Err(error) => {
                    progress.clear();
                    return failed(&error);
                }
            }
        }
        progress.clear();
        let advice = advice::of(&trials, self.link);
        if self.json {
            let report = table::json(&samples, &trials, &advice, self.link);
            super::print(&format!("{report:#}"))
        } else {
            let report = table::text(&samples, &trials, &advice, self.link);
            super::print(report.trim_end())
        }
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("thinwire: {error}");
    ExitCode::FAILURE
}
