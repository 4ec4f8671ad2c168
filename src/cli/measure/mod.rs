//! `thinwire measure`: what each coding and level costs and saves on one's own data.
//!
//! The table and the policy go to standard output, progress to standard error. CPU time is the
//! thread's own, so that a busy machine does not change the advice.

mod advice;
mod fetch;
mod link;
mod progress;
mod sample;
mod table;
mod trial;

use std::process::ExitCode;

use clap::Args;

use link::Link;
use progress::Progress;
use sample::Sample;
use trial::Trial;

/// What to measure.
#[derive(Args)]
pub(super) struct Measure {
    /// Files, or http:// and https:// URLs that are fetched once, each a body of its own
    #[arg(value_name = "FILE|URL", required = true)]
    bodies: Vec<String>,
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
        let mut samples = Vec::new();
        for name in &self.bodies {
            match Sample::read(name) {
                Ok(sample) => samples.push(sample),
                Err(error) => {
                    eprintln!("thinwire: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
        let recipes = trial::recipes();
        let mut progress = Progress::new(recipes.len());
        let mut trials = Vec::new();
        for recipe in recipes {
            progress.begins(&format!("{} {}", recipe.coding, recipe.effort));
            match Trial::of(recipe, &samples) {
                Ok(trial) => {
                    progress.ended(&trial);
                    trials.push(trial);
                }
                Err(error) => {
                    progress.clear();
                    eprintln!("thinwire: {error}");
                    return ExitCode::FAILURE;
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
