//! Configurations in ConfigMaps and beside units: the binary takes them, and what they describe works.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Ca, Proxy, Uvicorn, folder, thinwire};
use crate::tools::{GATEWAY_VALUES, KUSTOMIZATIONS, helm, kustomize, repository};

/// Every config.yaml, as a file beside the certificate that its pod would have.
fn files() -> Vec<(String, PathBuf)> {
    let mut sets: Vec<_> = KUSTOMIZATIONS
        .iter()
        .map(|&folder| (folder, kustomize(folder)))
        .collect();
    sets.push(("helm", helm(None)));
    sets.push(("helm gateway", helm(Some(GATEWAY_VALUES))));
    let mut files = Vec::new();
    for (of, objects) in &sets {
        let configs = objects
            .iter()
            .filter_map(|object| object.pointer("/data/config.yaml"));
        let before = files.len();
        files.extend(configs.map(|config| (format!("{of}: {config}"), laid(config))));
        assert!(files.len() > before, "{of} has no config.yaml");
    }
    files.push((
        "systemd".to_owned(),
        repository("deploy/systemd/config.yaml"),
    ));
    files
}

fn laid(config: &Value) -> PathBuf {
    let folder = folder("configuration");
    std::fs::create_dir(folder.join("tls")).unwrap();
    let pair = Ca::new().issue(&["www.example.com"]);
    std::fs::copy(pair.chain, folder.join("tls/tls.crt")).unwrap();
    std::fs::copy(pair.key, folder.join("tls/tls.key")).unwrap();
    let file = folder.join("config.yaml");
    std::fs::write(&file, config.as_str().unwrap()).unwrap();
    file
}

#[test]
fn every_configuration_passes_the_check_without_a_warning() {
    for (of, file) in files() {
        let checked = thinwire(&["check", "--config", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success() && said.is_empty(), "{of}\n{said}");
    }
}

#[test]
fn listeners_are_where_the_pods_say() {
    for (of, file) in files() {
        if of.starts_with("systemd") {
            continue;
        }
        let yaml = std::fs::read_to_string(&file).unwrap();
        assert!(
            yaml.contains("address: 0.0.0.0:8080"),
            "{of}: the port `http`"
        );
        assert!(
            yaml.contains("address: 0.0.0.0:9900"),
            "{of}: the port `admin`"
        );
    }
}

#[test]
fn the_example_is_served_as_the_gateway_overlay_says() {
    let example = repository("deploy/example");
    let app = Uvicorn::with("app", &["--app-dir", example.to_str().unwrap()]);
    let yaml = std::fs::read_to_string(repository("deploy/overlays/gateway/config.yaml")).unwrap();
    let tls = "  - address: 0.0.0.0:8443\n    tls:\n      certificates:\n        - { chain: tls/tls.crt, key: tls/tls.key }\n";
    let replaced = [
        ("0.0.0.0:8080", "127.0.0.1:0"),
        ("0.0.0.0:9900", "127.0.0.1:0"),
        (tls, ""),
        (
            "  shared: { url: \"redis://thinwire-valkey:6379\", timeout: 50ms }\n",
            "",
        ),
        ("http://app:8000", &app.server()),
    ];
    let mut here = yaml;
    for (from, to) in replaced {
        assert!(here.contains(from), "no {from:?} to replace");
        here = here.replace(from, to);
    }
    let proxy = Proxy::start(&here);
    let plain = proxy.get("/items", &[]);
    let coded = proxy.get("/items", &[("accept-encoding", "zstd")]);
    assert_eq!(coded.coding(), "zstd");
    assert_eq!(coded.decoded(), plain.body);
    // It says max-age=60: the app is asked once.
    assert!(coded.header("cache-status").unwrap().contains("hit"));
    let events = proxy.get("/events?count=2", &[("accept-encoding", "gzip")]);
    assert_eq!(events.coding(), "gzip");
    assert!(Path::new(proxy.file()).is_file());
}
