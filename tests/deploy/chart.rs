//! The chart makes what kustomize makes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::tools::{CHART, GATEWAY_VALUES, helm, kustomize, tool};

#[test]
fn by_default_it_is_the_base() {
    compare(kustomize("deploy/base"), helm(None));
}

#[test]
fn with_every_switch_on_it_is_the_gateway_overlay() {
    let mut overlay = kustomize("deploy/overlays/gateway");
    // The namespace and the example applications are no part of the proxy.
    overlay.retain(|object| {
        let labels = &object["metadata"]["labels"];
        labels["app.kubernetes.io/name"] == "thinwire"
            || object["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("thinwire-"))
                && object["kind"] == "ConfigMap"
    });
    compare(overlay, helm(Some(GATEWAY_VALUES)));
}

#[track_caller]
fn compare(kustomize: Vec<Value>, helm: Vec<Value>) {
    let (left, right) = (by_name(kustomize), by_name(helm));
    let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&left), names(&right));
    for (name, object) in &left {
        assert_eq!(
            *object, right[name],
            "{name}: kustomize (left) and helm (right)"
        );
    }
}

/// Objects without what only one of the two adds.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    objects
        .into_iter()
        .map(|mut object| {
            bare(&mut object);
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            (
                format!("{}/{name}", object["kind"].as_str().unwrap()),
                object,
            )
        })
        .collect()
}

fn bare(object: &mut Value) {
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("namespace");
    if let Some(labels) = object["metadata"]["labels"].as_object_mut() {
        labels.remove("app.kubernetes.io/managed-by");
        labels.remove("helm.sh/chart");
    }
    if let Some(pod) = object.pointer_mut("/spec/template/metadata") {
        // Helm's way to roll pods; the hash in the name is kustomize's.
        let annotations = pod.as_object_mut().unwrap().remove("annotations");
        let only = annotations.is_none_or(|all| {
            all.as_object()
                .unwrap()
                .keys()
                .all(|key| key == "checksum/config")
        });
        assert!(only, "other annotations");
    }
    if let Some(config) = object.pointer("/data/config.yaml") {
        let file = crate::support::folder("chart").join("config.yaml");
        std::fs::write(&file, config.as_str().unwrap()).unwrap();
        object["data"]["config.yaml"] = tool(&["yaml", file.to_str().unwrap()], None);
    }
    if let Some(dashboard) = object.pointer("/data/thinwire.json") {
        object["data"]["thinwire.json"] =
            serde_json::from_str(dashboard.as_str().unwrap()).unwrap();
    }
    unhash(object);
}

/// `thinwire-5hf646bd66` is `thinwire`.
fn unhash(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((name, hash)) = text.rsplit_once('-') {
                let is =
                    hash.len() == 10 && hash.chars().all(|char| "bcdfghkmt2456789".contains(char));
                if is && name == "thinwire" {
                    *text = name.to_owned();
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(unhash),
        Value::Object(all) => all.values_mut().for_each(unhash),
        _ => {}
    }
}

#[test]
fn helm_lint_finds_nothing() {
    assert_eq!(tool(&["lint", CHART], None), json!([]));
    assert_eq!(tool(&["lint", CHART, GATEWAY_VALUES], None), json!([]));
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let refused = [
        (json!({ "replicas": 3 }), "replicas"),
        (json!({ "tls": { "enabled": "yes" } }), "/tls/enabled"),
        (
            json!({ "autoscaling": { "minReplicas": 0 } }),
            "/autoscaling/minReplicas",
        ),
        (json!({ "config": { "listen": [] } }), "/config/listen"),
        (
            json!({ "resources": { "limits": { "memory": null } } }),
            "/resources/limits",
        ),
        (
            json!({ "valkey": { "maxMemory": "a lot" } }),
            "/valkey/maxMemory",
        ),
    ];
    for (values, place) in refused {
        let faults = tool(&["values", CHART, &values.to_string()], None).to_string();
        assert!(faults.contains(place), "{values}: {faults}");
    }
    let fine = json!({ "tolerations": [{ "key": "edge" }], "preStopSeconds": 10 });
    assert_eq!(tool(&["values", CHART, &fine.to_string()], None), json!([]));
}
