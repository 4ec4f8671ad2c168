//! The files that people read: the example, the contract, the schema and the effective configuration.

use serde_json::{Value as Json, json};

use super::*;
use crate::config::{load, schema};

const EXAMPLE: &str = include_str!("../../../config.yaml");
const CONTRACT: &str = include_str!("../../../tests/fixtures/contract.yaml");
const SCHEMA: &str = include_str!("../../../deploy/config.schema.json");

/// The example with the lines that begin with one of `markers` in force.
pub(super) fn uncommented(markers: &[&str]) -> String {
    let mut text = String::new();
    for line in EXAMPLE.lines() {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        let line = match rest.strip_prefix('#') {
            Some(example) if example.starts_with('+') && markers.contains(&"+") => &example[1..],
            Some(key) if key.starts_with(char::is_lowercase) && markers.contains(&"key") => {
                &format!("{indent}{key}")
            }
            _ => line,
        };
        let _ = writeln!(text, "{line}");
    }
    text
}

fn read(text: &str) -> Settings {
    parse(text, "config.yaml", Path::new("")).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The contract with certificates where it names them.
fn contract() -> (Settings, Scratch) {
    let scratch = Scratch::new();
    for name in ["tls", "clients", "upstream-ca", "me"] {
        scratch.certificate(&format!("tls/{name}"));
    }
    for name in ["clients", "upstream-ca"] {
        let from = scratch.0.join(format!("tls/{name}.crt"));
        std::fs::rename(from, scratch.0.join(format!("tls/{name}.pem"))).unwrap();
    }
    let path = scratch.write("config.yaml", CONTRACT);
    let settings = load(&path).unwrap_or_else(|faults| panic!("{faults}"));
    (settings, scratch)
}

#[test]
fn the_example_serves_the_demo() {
    let settings = read(EXAMPLE);
    assert_eq!(
        settings.listen[0].address,
        crate::config::settings::Address::Tcp("127.0.0.1:8080".parse().unwrap())
    );
    assert_eq!(
        settings.upstreams[0].servers,
        [crate::config::settings::Server::Demo]
    );
    assert_eq!(settings.warnings, Vec::<String>::new());
}

#[test]
fn the_defaults_that_the_example_states_are_true() {
    assert_eq!(read(&uncommented(&["key"])), read(EXAMPLE));
}

#[test]
fn the_examples_in_the_example_lack_only_their_certificates() {
    let text = uncommented(&["key", "+"]);
    let faults = parse(&text, "config.yaml", Path::new("/nowhere")).unwrap_err();
    for fault in faults.list() {
        assert!(fault.what.contains("cannot be read"), "{fault}");
    }
    assert_eq!(faults.list().len(), 6, "{faults}");
}

#[test]
fn the_example_shows_every_key() {
    fn keys(schema: &Json, into: &mut Vec<String>) {
        match schema {
            Json::Object(entries) => {
                if let Some(Json::Object(properties)) = entries.get("properties") {
                    into.extend(properties.keys().cloned());
                }
                entries.values().for_each(|value| keys(value, into));
            }
            Json::Array(items) => items.iter().for_each(|item| keys(item, into)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    keys(&schema(), &mut all);
    assert!(all.len() > 100, "{}", all.len());
    for key in all {
        assert!(
            EXAMPLE.contains(&format!("{key}:")),
            "{key} is not in config.yaml"
        );
    }
}

#[test]
fn the_contract_holds_and_states_the_defaults() {
    let (settings, _scratch) = contract();
    let written = parsed("").unwrap();
    assert_eq!(settings.defaults, written.defaults);
    assert_eq!(settings.network, written.network);
    assert_eq!(settings.pool, written.pool);
    assert_eq!(settings.log, written.log);
    assert_eq!(settings.admin, written.admin);
    assert_eq!(settings.warnings, Vec::<String>::new());
    assert!(!settings.routes[0].policy.websocket.context_takeover);
    assert!(settings.routes[1].policy.cache.enabled);
}

#[test]
fn without_its_certificates_the_contract_lacks_nothing_else() {
    let faults = parse(CONTRACT, "config.yaml", Path::new("/nowhere")).unwrap_err();
    let paths: Vec<_> = faults
        .list()
        .iter()
        .map(|fault| fault.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "listen[1].tls.certificates[0].chain",
            "listen[1].tls.certificates[0].key",
            "listen[1].tls.client_ca",
            "upstreams.app.tls.ca",
            "upstreams.app.tls.client.chain",
            "upstreams.app.tls.client.key",
        ]
    );
}

#[test]
fn the_effective_configuration_reads_back_as_itself() {
    let (settings, _scratch) = contract();
    assert_eq!(read(&settings.to_json().to_string()), settings);
    let varied = parsed(
        "pool: { threads: 3 }\ncache: { shared: { url: 'rediss://h:1/0' } }\ndefaults:\n  \
         compress: { flush: never, breach: { pad: 100B } }\n  cache: { query: [a, b] }\n  \
         websocket: { except: [binary], idle_timeout: 1500ms }\nroutes:\n  - name: a\n    \
         upstream: app\n    match: { host: ['*.x'], path: =/a, methods: [GET], headers: { a: b, via: '*' } }\n    \
         headers: { request: { set: { x-a: b }, remove: [x-c] } }\n",
    )
    .unwrap();
    assert_eq!(read(&varied.to_json().to_string()), varied);
}

#[test]
fn the_effective_configuration_holds_no_secrets() {
    let json = parsed(
        "admin: { token: hidden }\ncache: { shared: { url: 'redis://me:hidden@h:1/2' } }\n\
         defaults: { headers: { request: { set: { Authorization: Basic hidden } } } }\n",
    )
    .unwrap()
    .to_json();
    assert!(!json.to_string().contains("hidden"), "{json}");
    assert_eq!(json["admin"]["token"], "***");
    assert_eq!(json["cache"]["shared"]["url"], "redis://me:***@h:1/2");
}

#[test]
fn the_committed_schema_is_fresh() {
    let committed: Json = serde_json::from_str(SCHEMA).unwrap();
    let advice = "write it anew: cargo run -- schema > schema.json, then move it to deploy/config.schema.json";
    assert!(committed == schema(), "{advice}");
}

#[test]
fn what_parses_also_holds_by_the_schema() {
    let (settings, _scratch) = contract();
    let schema = schema();
    assert_eq!(
        violations(&schema, &schema, &settings.to_json(), "$"),
        Vec::<String>::new()
    );
    let defaults = read(&uncommented(&["key"])).to_json();
    assert_eq!(
        violations(&schema, &schema, &defaults, "$"),
        Vec::<String>::new()
    );
}

#[test]
fn the_schema_tells_editors_of_what_is_wrong() {
    let schema = schema();
    let bad = json!({ "listen": [{ "address": "x", "adress": 1 }], "drain": "5 s",
        "upstreams": { "a": { "servers": ["ftp://x"] } },
        "routes": [{ "name": "r", "compress": { "levels": { "br": 12 } } }] });
    assert_eq!(
        violations(&schema, &schema, &bad, "$"),
        [
            "$.drain",
            "$.listen[0].address",
            "$.listen[0].adress",
            "$.routes[0].upstream",
            "$.routes[0].compress.levels.br",
            "$.upstreams.a.servers[0]",
        ]
    );
}

#[test]
fn every_default_of_the_schema_fits_its_own_schema() {
    fn visit(root: &Json, schema: &Json, path: &str) {
        if let Some(default) = schema.get("default") {
            assert_eq!(
                violations(root, schema, default, path),
                Vec::<String>::new()
            );
        }
        match schema {
            Json::Object(entries) => {
                entries
                    .iter()
                    .for_each(|(key, value)| visit(root, value, &format!("{path}.{key}")));
            }
            Json::Array(items) => items.iter().for_each(|item| visit(root, item, path)),
            _ => {}
        }
    }
    let schema = schema();
    visit(&schema, &schema, "$");
}

/// Where `value` is not as `schema` wants it: as much of JSON Schema as ours uses.
fn violations(root: &Json, schema: &Json, value: &Json, path: &str) -> Vec<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root
            .pointer(reference.trim_start_matches('#'))
            .expect("a target");
        return violations(root, target, value, path);
    }
    let one_holds = |choices: &Vec<Json>| {
        choices
            .iter()
            .any(|choice| violations(root, choice, value, path).is_empty())
    };
    let mut here = schema["anyOf"].as_array().is_none_or(one_holds);
    here &= schema["enum"]
        .as_array()
        .is_none_or(|known| known.contains(value));
    here &= schema.get("const").is_none_or(|only| only == value);
    here &= is_of_type(&schema["type"], value);
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
        here &= regex_lite::Regex::new(pattern)
            .expect("a pattern")
            .is_match(text);
    }
    if let Some(number) = value.as_i64() {
        here &= schema["minimum"]
            .as_i64()
            .is_none_or(|least| least <= number);
        here &= schema["maximum"].as_i64().is_none_or(|most| number <= most);
    }
    let mut all = if here {
        Vec::new()
    } else {
        vec![path.to_owned()]
    };
    if let Some(items) = value.as_array() {
        for (index, item) in items.iter().enumerate() {
            all.extend(violations(
                root,
                &schema["items"],
                item,
                &format!("{path}[{index}]"),
            ));
        }
    }
    if let Some(entries) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten();
        let missing = required
            .filter_map(Json::as_str)
            .filter(|name| !entries.contains_key(*name));
        all.extend(missing.map(|name| format!("{path}.{name}")));
        for (name, entry) in entries {
            let known = schema["properties"]
                .get(name)
                .unwrap_or_else(|| &schema["additionalProperties"]);
            let below = format!("{path}.{name}");
            match known {
                Json::Bool(false) => all.push(below),
                known => all.extend(violations(root, known, entry, &below)),
            }
        }
    }
    all
}

fn is_of_type(types: &Json, value: &Json) -> bool {
    let is = |name: &Json| match name.as_str() {
        Some("string") => value.is_string(),
        Some("integer" | "number") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    };
    match types {
        Json::Null => true,
        Json::Array(names) => names.iter().any(is),
        name => is(name),
    }
}
