//! How the binary starts, and how it does not.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Output;

use crate::support::{Demo, Origin, Proxy, Setup, folder, thinwire};

fn file(yaml: &str) -> PathBuf {
    let file = folder("start").join("config.yaml");
    std::fs::write(&file, yaml).unwrap();
    file
}

fn run(command: &str, yaml: &str) -> (Output, String, String) {
    let file = file(yaml).display().to_string();
    let output = thinwire(&[command, "--config", &file]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said, file)
}

#[test]
fn an_address_in_use_is_exit_1() {
    let owner = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = owner.local_addr().unwrap();
    let yaml = Setup::before(&Demo).yaml();
    let serving = yaml.replacen("127.0.0.1:0", &taken.to_string(), 1);
    let admin = yaml.replace(
        "admin:\n  address: 127.0.0.1:0",
        &format!("admin:\n  address: {taken}"),
    );
    let beside = Setup::before(&Demo)
        .listen(&format!("- address: 127.0.0.1:0\n- address: {taken}"))
        .yaml();
    for yaml in [serving, admin, beside] {
        let (output, said, _) = run("serve", &yaml);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(&taken.to_string()) && said.contains("in use"),
            "{said}"
        );
    }
}

#[test]
fn a_bad_configuration_is_exit_78_with_all_its_faults() {
    let yaml = Setup::before(&Demo).yaml();
    let yaml = yaml.replace(
        "upstream: app",
        "upstream: none\n    compress: { levels: { gzip: 13 } }\n    odd: 1",
    );
    for command in ["check", "serve"] {
        let (output, said, file) = run(command, &yaml);
        assert_eq!(output.status.code(), Some(78), "{said}");
        for key in [
            "routes[0].upstream",
            "routes[0].compress.levels.gzip",
            "routes[0].odd",
        ] {
            let fault = said
                .lines()
                .find(|line| line.contains(&format!(": {key}: ")));
            let fault = fault.unwrap_or_else(|| panic!("{key} is not among\n{said}"));
            let place = fault
                .strip_prefix(&format!("{file}:"))
                .unwrap_or_else(|| panic!("{fault}"));
            let numbers: Vec<_> = place.split(':').take(2).map(str::parse::<u32>).collect();
            assert!(numbers.iter().all(Result::is_ok), "{fault}");
        }
        // The offending line follows.
        assert!(said.contains("    upstream: none"), "{said}");
    }
    let missing = folder("start").join("none.yaml");
    let output = thinwire(&["serve", "--config", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(78));
}

#[test]
fn a_good_configuration_passes_the_check_and_is_not_served_by_it() {
    let (output, said, _) = run("check", &Setup::before(&Demo).yaml());
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn every_address_is_logged_and_the_demo_says_what_to_try() {
    let listen = "- address: 127.0.0.1:0\n- address: 127.0.0.2:0\n- address: \"[::1]:0\"";
    let proxy = Setup::before(&Demo).listen(listen).start();
    for (index, host) in ["127.0.0.1", "127.0.0.2", "::1"].iter().enumerate() {
        let addr = proxy.addr(index);
        assert_eq!(addr.ip().to_string(), *host);
        crate::support::get(addr, "/ping", &[]).expect(200);
    }
    proxy.wait_for_log("what to try", |line| {
        line.contains("curl") && line.contains(&proxy.url("/users"))
    });
}

#[test]
fn it_says_what_it_is() {
    let version = thinwire(&["--version"]);
    assert!(version.status.success());
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(
        text.starts_with("thinwire ") && text.contains(env!("CARGO_PKG_VERSION")),
        "{text}"
    );
    let help = thinwire(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(
        ["serve", "check", "SIGHUP"]
            .iter()
            .all(|word| text.contains(word)),
        "{text}"
    );
}

#[test]
fn the_health_command_asks_the_operator_s_address() {
    let app = Origin::answer(200, &[], "fine");
    let proxy = Proxy::before(&app);
    // The file has to name the port.
    let admin = format!("admin:\n  address: {}", proxy.admin_addr());
    let yaml = Setup::before(&app)
        .yaml()
        .replace("admin:\n  address: 127.0.0.1:0", &admin);
    let (output, said, _) = run("health", &yaml);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(proxy.stop().success());
    assert_eq!(run("health", &yaml).0.status.code(), Some(1));
}
