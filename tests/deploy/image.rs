//! Dockerfiles. That the image is built and serves is for deploy/try-image: it takes minutes and root.

use std::process::Command;

use crate::support::thinwire;
use crate::tools::{program, repository, succeeds};

#[test]
fn hadolint_finds_nothing() {
    for file in ["deploy/Dockerfile", "deploy/example/Dockerfile"] {
        let mut hadolint = Command::new(program("hadolint"));
        hadolint.args(["--failure-threshold", "style"]);
        assert_eq!(succeeds(hadolint.arg(repository(file))), "", "{file}");
    }
}

#[test]
fn the_image_s_own_configuration_is_good_and_reachable_from_outside() {
    let file = repository("deploy/container.yaml");
    let checked = thinwire(&["check", "--config", file.to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
    let yaml = std::fs::read_to_string(file).unwrap();
    assert!(
        yaml.contains("- address: 0.0.0.0:8080"),
        "a container's loopback is its own"
    );
}
