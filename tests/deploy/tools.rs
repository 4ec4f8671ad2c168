//! The tools: rendered manifests as JSON, and what checks them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::python;

/// The kustomizations that somebody would apply.
pub(crate) const KUSTOMIZATIONS: [&str; 3] = [
    "deploy/base",
    "deploy/overlays/gateway",
    "deploy/overlays/sidecar",
];

/// The chart, and its values that make what the gateway overlay is.
pub(crate) const CHART: &str = "deploy/chart";
pub(crate) const GATEWAY_VALUES: &str = "deploy/chart/ci/gateway-values.yaml";

pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A program of the venv: `kubectl`, `hadolint`, `python`.
pub(crate) fn program(name: &str) -> PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let python = PYTHON.get_or_init(|| {
        let made = python::venv("tests/deploy/requirements.txt");
        made.unwrap_or_else(|sentence| panic!("{sentence}"))
    });
    python.with_file_name(name)
}

/// The objects of a kustomization.
#[track_caller]
pub(crate) fn kustomize(folder: &str) -> Vec<Value> {
    list(tool(&["kustomize", folder], None))
}

/// The objects of the chart with these values, as the release `thinwire`.
#[track_caller]
pub(crate) fn helm(values: Option<&str>) -> Vec<Value> {
    let arguments: Vec<_> = ["helm", CHART].into_iter().chain(values).collect();
    list(tool(&arguments, None))
}

/// tests/deploy/tool.py: what it prints, as JSON.
#[track_caller]
pub(crate) fn tool(arguments: &[&str], input: Option<&Value>) -> Value {
    let mut command = Command::new(program("python"));
    command
        .arg("-B")
        .arg(repository("tests/deploy/tool.py"))
        .args(arguments);
    json(&mut command, input)
}

/// Faults of custom resources, by the schemas that npm has of them.
#[track_caller]
pub(crate) fn custom_faults(objects: &[Value]) -> Vec<Value> {
    let custom = |object: &&Value| {
        let groups = [
            "cert-manager.io",
            "gateway.networking.k8s.io",
            "monitoring.coreos.com",
        ];
        let version = object["apiVersion"].as_str().unwrap();
        groups.iter().any(|group| version.starts_with(group))
    };
    let custom: Vec<_> = objects.iter().filter(custom).cloned().collect();
    let mut command = Command::new("node");
    command
        .arg(repository("tests/deploy/crds.mjs"))
        .arg(schemas());
    list(json(&mut command, Some(&Value::Array(custom))))
}

/// The folder that npm filled.
fn schemas() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let files = ["package.json", "package-lock.json", ".npmrc"]
            .map(|name| repository("tests/deploy").join(name));
        let of: Vec<_> = files.iter().map(PathBuf::as_path).collect();
        let made = python::made_once("schemas", &of, |folder| {
            for file in &files {
                let copied = std::fs::copy(file, folder.join(file.file_name().unwrap()));
                copied.map_err(|error| error.to_string())?;
            }
            let mut install = Command::new("npm");
            install.arg("ci").current_dir(folder);
            python::run(&mut install)
                .map_err(|said| format!("these tests need npm; run ./tests/run: {said}"))
        });
        made.unwrap_or_else(|sentence| panic!("{sentence}"))
    })
}

/// Runs a command that has to succeed; both its streams, for sentences.
#[track_caller]
pub(crate) fn succeeds(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}; run ./tests/run"));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}:\n{said}");
    said
}

#[track_caller]
fn json(command: &mut Command, input: Option<&Value>) -> Value {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let child = command.spawn();
    let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}; run ./tests/run"));
    let mut pipe = child.stdin.take().unwrap();
    if let Some(input) = input {
        pipe.write_all(input.to_string().as_bytes()).unwrap();
    }
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command:?}: {said}"))
}

#[track_caller]
fn list(value: Value) -> Vec<Value> {
    serde_json::from_value(value).expect("a list")
}
