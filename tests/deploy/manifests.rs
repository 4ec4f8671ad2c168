//! Manifests: they validate, run under the strictest pod security, and their names fit each other.

use serde_json::{Map, Value, json};

use crate::tools::{CHART, GATEWAY_VALUES, KUSTOMIZATIONS, custom_faults, helm, kustomize, tool};

/// A setting's name for sentences, and its objects.
fn settings() -> Vec<(&'static str, Vec<Value>)> {
    let mut all: Vec<_> = KUSTOMIZATIONS
        .iter()
        .map(|&folder| (folder, kustomize(folder)))
        .collect();
    all.push((CHART, helm(None)));
    all.push((GATEWAY_VALUES, helm(Some(GATEWAY_VALUES))));
    all
}

#[test]
fn every_object_is_valid_to_the_letter() {
    let all: Vec<Value> = settings()
        .into_iter()
        .flat_map(|(_, objects)| objects)
        .collect();
    assert_eq!(tool(&["validate"], Some(&json!(all))), json!([]));
    assert_eq!(custom_faults(&all), [] as [Value; 0]);
}

#[test]
fn the_checks_see_unknown_keys_and_wrong_values() {
    let mut objects = kustomize("deploy/overlays/gateway");
    let of = |objects: &mut Vec<Value>, kind: &str| {
        let index = objects.iter().position(|object| object["kind"] == kind);
        index.unwrap()
    };
    let deployment = of(&mut objects, "Deployment");
    objects[deployment]["spec"]["replica"] = json!(3);
    let certificate = of(&mut objects, "Certificate");
    objects[certificate]["spec"]["dnsName"] = json!(["www.example.com"]);
    let route = of(&mut objects, "HTTPRoute");
    objects[route]["spec"]["hostnames"] = json!(["no host"]);
    let faults = tool(&["validate"], Some(&json!(objects))).to_string();
    assert!(faults.contains("replica"), "{faults}");
    let faults = json!(custom_faults(&objects)).to_string();
    for expected in ["dnsName", "HTTPRoute/thinwire"] {
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
}

#[test]
fn every_pod_is_restricted_and_bounded() {
    for (of, objects) in settings() {
        for (name, template) in templates(&objects) {
            let (of, pod) = (format!("{of}: {name}"), &template["spec"]);
            assert_eq!(pod["automountServiceAccountToken"], false, "{of}");
            for key in ["hostNetwork", "hostPID", "hostIPC"] {
                assert_eq!(pod[key], Value::Null, "{of}: {key}");
            }
            let kinds = ["configMap", "emptyDir", "projected", "secret"];
            for volume in array(&pod["volumes"]) {
                let allowed = kinds.iter().any(|kind| volume.get(kind).is_some());
                assert!(allowed, "{of}: {volume}");
            }
            for container in containers(pod) {
                restricted(&of, pod, container);
                bounded(&of, container);
            }
        }
    }
}

fn restricted(of: &str, pod: &Value, container: &Value) {
    let own = &container["securityContext"];
    let either = |key: &str| {
        own.get(key)
            .or_else(|| pod["securityContext"].get(key))
            .unwrap_or(&Value::Null)
            .clone()
    };
    assert_eq!(either("runAsNonRoot"), true, "{of}");
    assert!(
        either("runAsUser").as_u64().is_some_and(|user| user > 0),
        "{of}"
    );
    assert_eq!(either("seccompProfile")["type"], "RuntimeDefault", "{of}");
    assert_eq!(own["allowPrivilegeEscalation"], false, "{of}");
    assert_eq!(own["readOnlyRootFilesystem"], true, "{of}");
    assert_eq!(own["capabilities"], json!({ "drop": ["ALL"] }), "{of}");
}

/// Memory: request = limit. CPU: a request, and no quota.
fn bounded(of: &str, container: &Value) {
    let (requests, limits) = (
        &container["resources"]["requests"],
        &container["resources"]["limits"],
    );
    assert!(requests["memory"].is_string(), "{of}");
    assert_eq!(requests["memory"], limits["memory"], "{of}");
    assert!(requests["cpu"].is_string(), "{of}");
    assert_eq!(limits["cpu"], Value::Null, "{of}");
}

#[test]
fn every_selector_finds_its_pods_and_every_port_is_there() {
    for (of, objects) in settings() {
        let pods = templates(&objects);
        let find = |selector: &Value| {
            let wanted = selector.as_object().unwrap();
            assert!(!wanted.is_empty(), "{of}: an empty selector");
            let is = |template: &Value| {
                let labels = &template["metadata"]["labels"];
                wanted.iter().all(|(key, value)| labels[key] == *value)
            };
            let found = pods.iter().find(|(_, template)| is(template));
            // The example's own applications are what the base alone has not got.
            found
                .unwrap_or_else(|| panic!("{of}: nobody is {selector}"))
                .1
        };
        for object in &objects {
            let spec = &object["spec"];
            match object["kind"].as_str().unwrap() {
                "Service" => {
                    let template = find(&spec["selector"]);
                    for port in array(&spec["ports"]) {
                        has_port(of, template, &port["targetPort"]);
                    }
                }
                "Deployment" | "StatefulSet" => {
                    let labels = &spec["template"]["metadata"]["labels"];
                    let wanted = spec["selector"]["matchLabels"].as_object().unwrap();
                    assert!(
                        wanted.iter().all(|(key, value)| labels[key] == *value),
                        "{of}"
                    );
                }
                "PodDisruptionBudget" => drop(find(&spec["selector"]["matchLabels"])),
                "NetworkPolicy" => {
                    let template = find(&spec["podSelector"]["matchLabels"]);
                    for rule in array(&spec["ingress"]) {
                        for port in array(&rule["ports"]) {
                            has_port(of, template, &port["port"]);
                        }
                    }
                }
                "HorizontalPodAutoscaler" => {
                    let target = &spec["scaleTargetRef"];
                    named(of, &objects, &target["kind"], &target["name"]);
                }
                "HTTPRoute" | "GRPCRoute" => {
                    for backend in array(&spec["rules"])
                        .iter()
                        .flat_map(|rule| array(&rule["backendRefs"]))
                    {
                        let service = named(of, &objects, &json!("Service"), &backend["name"]);
                        let ports = array(&service["spec"]["ports"]);
                        assert!(
                            ports.iter().any(|port| port["port"] == backend["port"]),
                            "{of}"
                        );
                    }
                }
                _ => {}
            }
        }
        for (name, template) in &pods {
            mounts(of, name, template, &objects);
        }
    }
}

/// A port by its name, or by its number.
fn has_port(of: &str, template: &Value, wanted: &Value) {
    let has = containers(&template["spec"])
        .iter()
        .flat_map(|container| array(&container["ports"]))
        .any(|port| port["name"] == *wanted || port["containerPort"] == *wanted);
    assert!(has, "{of}: no port {wanted}");
}

fn named<'a>(of: &str, objects: &'a [Value], kind: &Value, name: &Value) -> &'a Value {
    let mut all = objects.iter();
    all.find(|object| object["kind"] == *kind && object["metadata"]["name"] == *name)
        .unwrap_or_else(|| panic!("{of}: no {kind} {name}"))
}

/// What is mounted is a volume, and the ConfigMap behind it is one of these objects.
fn mounts(of: &str, name: &str, template: &Value, objects: &[Value]) {
    let volumes = array(&template["spec"]["volumes"]);
    for container in containers(&template["spec"]) {
        for mount in array(&container["volumeMounts"]) {
            let found = volumes.iter().any(|volume| volume["name"] == mount["name"]);
            assert!(found, "{of}: {name}: {mount}");
        }
    }
    let sources = volumes
        .iter()
        .flat_map(|volume| array(&volume["projected"]["sources"]));
    for source in sources {
        if let Some(map) = source.get("configMap") {
            named(of, objects, &json!("ConfigMap"), &map["name"]);
        }
    }
}

#[test]
fn a_drain_fits_into_the_grace_period() {
    for (of, objects) in settings() {
        for (name, template) in templates(&objects) {
            let pod = &template["spec"];
            let Some(container) = containers(pod)
                .into_iter()
                .find(|one| one["name"] == "thinwire")
            else {
                continue;
            };
            let config = config_of(of, pod, &objects);
            let drain = config.lines().find_map(|line| line.strip_prefix("drain: "));
            let drain: u64 = drain
                .unwrap()
                .split_whitespace()
                .next()
                .unwrap()
                .trim_end_matches('s')
                .parse()
                .unwrap();
            let pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
                .as_u64()
                .unwrap_or(0);
            let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or(30);
            assert!(
                pause + drain < grace,
                "{of}: {name}: {pause} + {drain} in {grace}"
            );
            for (probe, path) in [("livenessProbe", "/live"), ("readinessProbe", "/ready")] {
                let asked = &container[probe]["httpGet"];
                assert_eq!(
                    *asked,
                    json!({ "path": path, "port": "admin" }),
                    "{of}: {name}"
                );
            }
        }
    }
}

/// config.yaml as the pod sees it.
fn config_of<'a>(of: &str, pod: &Value, objects: &'a [Value]) -> &'a str {
    let volumes = array(&pod["volumes"]);
    let mut sources = volumes
        .iter()
        .flat_map(|volume| array(&volume["projected"]["sources"]));
    let map = sources.find_map(|source| source.get("configMap")).unwrap();
    let map = named(of, objects, &json!("ConfigMap"), &map["name"]);
    map["data"]["config.yaml"].as_str().unwrap()
}

/// Pod templates, by the name of what makes the pods.
fn templates(objects: &[Value]) -> Vec<(&str, &Value)> {
    let makes = |object: &&Value| object["spec"]["template"]["spec"]["containers"].is_array();
    let named = |object| {
        let object: &Value = object;
        (
            object["metadata"]["name"].as_str().unwrap(),
            &object["spec"]["template"],
        )
    };
    objects.iter().filter(makes).map(named).collect()
}

fn containers(pod: &Value) -> Vec<&Value> {
    let (first, then) = (array(&pod["initContainers"]), array(&pod["containers"]));
    first.iter().chain(then).collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn namespaces_enforce_the_strictest_standard() {
    for folder in ["deploy/overlays/gateway", "deploy/overlays/sidecar"] {
        let objects = kustomize(folder);
        let namespace = objects
            .iter()
            .find(|object| object["kind"] == "Namespace")
            .unwrap();
        let empty = Map::new();
        let labels = namespace["metadata"]["labels"]
            .as_object()
            .unwrap_or(&empty);
        assert_eq!(
            labels["pod-security.kubernetes.io/enforce"], "restricted",
            "{folder}"
        );
    }
}
