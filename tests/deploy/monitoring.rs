//! Alerts and dashboard: every metric in them exists, with these labels; Prometheus reads them; alerts fire when they
//! should and at no other time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use regex_lite::Regex;
use serde_json::{Value, json};

use crate::support::{Demo, Proxy, folder};
use crate::tools::{repository, succeeds, tool};

/// INTERFACES.md's table and ours: name, kind, labels.
const TABLE: &str = include_str!("../fixtures/metrics.txt");

/// Labels that Prometheus adds to what it scrapes.
const ADDED: [&str; 2] = ["namespace", "pod"];

fn rules() -> Value {
    tool(&["yaml", "deploy/components/monitoring/rules.yaml"], None)["spec"].take()
}

fn dashboard() -> Value {
    let file = repository("deploy/components/monitoring/thinwire.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// Every PromQL expression, with what it belongs to.
fn expressions() -> Vec<(String, String)> {
    let rules = rules();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let groups = rules["groups"].as_array().unwrap();
    let mut all: Vec<_> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .map(|rule| {
            (
                text(&rule["alert"]) + &text(&rule["record"]),
                text(&rule["expr"]),
            )
        })
        .collect();
    let dashboard = dashboard();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            all.push((text(&panel["title"]), text(&target["expr"])));
        }
    }
    all
}

fn table() -> BTreeMap<&'static str, (&'static str, BTreeSet<&'static str>)> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let [name, kind, labels] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not a row: {line}");
        };
        let labels = labels.split(',').filter(|label| *label != "-").collect();
        (name, (kind, labels))
    })
    .collect()
}

#[test]
fn every_metric_exists_with_these_labels() {
    let table = table();
    let metric = Regex::new(r"\bthinwire_[a-z_]+(\{[^}]*\})?").unwrap();
    let label = Regex::new(r#"([a-z_]+)(?:=~|!=|!~|=)""#).unwrap();
    let mut seen = BTreeSet::new();
    for (of, expression) in expressions() {
        for found in metric.find_iter(&expression) {
            let name = found.as_str().split('{').next().unwrap();
            let (base, (_, labels)) =
                look_up(&table, name).unwrap_or_else(|| panic!("{of}: there is no metric {name}"));
            seen.insert(base);
            for label in label.captures_iter(found.as_str()) {
                let label = label.get(1).unwrap().as_str();
                let known = labels.contains(label) || ADDED.contains(&label) || label == "le";
                assert!(known, "{of}: {name} has no label {label}");
            }
        }
    }
    // A metric that no panel shows is one that nobody finds.
    let table: BTreeSet<_> = table.keys().copied().collect();
    let hidden: Vec<_> = table.difference(&seen).collect();
    assert!(
        hidden == [&"thinwire_informational_dropped_total"],
        "on no panel and in no alert: {hidden:?}"
    );
}

type Row<'a> = (&'static str, &'a (&'static str, BTreeSet<&'static str>));

/// A histogram has three names in PromQL.
fn look_up<'a>(
    table: &'a BTreeMap<&'static str, (&'static str, BTreeSet<&'static str>)>,
    name: &str,
) -> Option<Row<'a>> {
    if let Some((name, row)) = table.get_key_value(name) {
        return (row.0 != "histogram").then_some((*name, row));
    }
    let base = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|end| name.strip_suffix(end))?;
    let (name, row) = table.get_key_value(base)?;
    (row.0 == "histogram").then_some((*name, row))
}

#[test]
fn every_label_that_is_grouped_by_is_there() {
    let table = table();
    let by = Regex::new(r"by \(([a-z_, ]+)\) \((?:rate\()?(thinwire_[a-z_]+)").unwrap();
    let mut found = 0;
    for (of, expression) in expressions() {
        for group in by.captures_iter(&expression) {
            let (_, (_, labels)) = look_up(&table, &group[2]).expect("a metric");
            for label in group[1].split(", ") {
                let known = labels.contains(label) || ADDED.contains(&label) || label == "le";
                assert!(known, "{of}: {} has no label {label}", &group[2]);
            }
            found += 1;
        }
    }
    assert!(found > 30, "the pattern found {found} groupings only");
}

#[test]
fn a_running_proxy_has_what_the_dashboard_s_variables_ask_for() {
    let proxy = Proxy::before(&Demo);
    proxy
        .get("/users", &[("accept-encoding", "gzip")])
        .expect(200);
    let text = proxy.admin("/metrics").expect(200).text();
    let table = table();
    for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
        let [name, kind] = line.split(' ').skip(2).collect::<Vec<_>>()[..] else {
            panic!("not a type: {line}");
        };
        assert_eq!(table.get(name).map(|row| row.0), Some(kind), "{name}");
    }
    let variable = Regex::new(r"label_values\((thinwire_[a-z_]+)").unwrap();
    let dashboard = dashboard().to_string();
    for asked in variable.captures_iter(&dashboard) {
        let name = asked.get(1).unwrap().as_str();
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
    }
}

/// The rules as promtool reads them.
fn rules_file() -> PathBuf {
    let file = folder("rules").join("rules.yaml");
    std::fs::write(&file, rules().to_string()).unwrap();
    file
}

fn promtool(arguments: &[&str], file: &PathBuf) -> String {
    succeeds(Command::new("promtool").args(arguments).arg(file))
}

#[test]
fn prometheus_reads_every_rule_and_every_panel() {
    promtool(&["check", "rules"], &rules_file());
    let panel = |(index, (_, expression)): (usize, (String, String))| {
        let expression = expression.replace("$__rate_interval", "5m");
        json!({ "record": format!("panel:{index}"), "expr": expression })
    };
    let panels: Vec<_> = expressions().into_iter().enumerate().map(panel).collect();
    let file = folder("panels").join("panels.yaml");
    let groups = json!({ "groups": [{ "name": "panels", "rules": panels }] });
    std::fs::write(&file, groups.to_string()).unwrap();
    promtool(&["check", "rules"], &file);
}

#[test]
fn alerts_fire_when_they_should() {
    let rules = rules_file();
    let stories = std::fs::read_to_string(repository("tests/deploy/alerts.yaml")).unwrap();
    let file = rules.with_file_name("alerts.yaml");
    std::fs::write(&file, stories).unwrap();
    promtool(&["test", "rules"], &file);
    let named = std::fs::read_to_string(&file).unwrap();
    for rule in rules_of_alerts() {
        assert!(
            named.contains(&format!("alertname: {rule}\n")),
            "no story of {rule}"
        );
    }
}

fn rules_of_alerts() -> Vec<String> {
    let rules = rules();
    let all = rules["groups"][0]["rules"].as_array().unwrap();
    let name = |rule: &Value| rule["alert"].as_str().map(str::to_owned);
    all.iter().filter_map(name).collect()
}
