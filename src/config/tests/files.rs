//! Certificates and keys: what cannot be used when serving is a fault of the file.

use super::*;
use crate::config::load;

/// What is wrong with a file that names these two.
fn pair_faults(scratch: &Scratch, chain: &str, key: &str) -> Vec<String> {
    let text = format!(
        "listen:\n  - address: 127.0.0.1:1\n    tls:\n      certificates:\n        \
         - {{ chain: {chain}, key: {key} }}\n{UPSTREAMS}{ROUTES}"
    );
    let path = scratch.write("t.yaml", text);
    let Err(faults) = load(&path) else {
        return Vec::new();
    };
    let here = format!("{}/", scratch.0.display());
    faults
        .list()
        .iter()
        .map(|f| format!("{}:{} {}: {}", f.line, f.column, f.path, f.what).replace(&here, ""))
        .collect()
}

#[test]
fn names_start_from_the_directory_of_the_file() {
    let scratch = Scratch::new();
    scratch.certificate("tls/a");
    assert_eq!(
        pair_faults(&scratch, "tls/a.crt", "tls/a.key"),
        Vec::<String>::new()
    );
    let settings = load(&scratch.0.join("t.yaml")).unwrap();
    let tls = settings.listen[0].tls.as_ref().unwrap();
    assert_eq!(tls.certificates[0].chain, scratch.0.join("tls/a.crt"));
}

#[test]
fn files_that_cannot_be_read_are_faults_of_each_name() {
    let scratch = Scratch::new();
    let faults = pair_faults(&scratch, "no.crt", "no.key");
    assert_eq!(
        faults,
        [
            "5:20 listen[0].tls.certificates[0].chain: no.crt cannot be read (No such file or \
             directory (os error 2)), name a PEM file with CERTIFICATE sections",
            "5:33 listen[0].tls.certificates[0].key: no.key cannot be read (No such file or \
             directory (os error 2)), name a PEM file with a PRIVATE KEY section",
        ]
    );
}

#[test]
fn files_that_are_something_else_are_faults() {
    let scratch = Scratch::new();
    scratch.certificate("a");
    scratch.write("empty.pem", "");
    let noise = "-----BEGIN CERTIFICATE-----\nbm9pc2U=\n-----END CERTIFICATE-----\n";
    scratch.write("noise.pem", noise);
    let [fault] = pair_faults(&scratch, "empty.pem", "a.key")
        .try_into()
        .unwrap();
    assert!(
        fault.starts_with("5:20 listen[0].tls.certificates[0].chain: empty.pem"),
        "{fault}"
    );
    let [fault] = pair_faults(&scratch, "noise.pem", "a.key")
        .try_into()
        .unwrap();
    assert!(
        fault.contains("noise.pem holds something that is no certificate"),
        "{fault}"
    );
    let [fault] = pair_faults(&scratch, "a.crt", "a.crt").try_into().unwrap();
    assert!(
        fault.starts_with("5:34") || fault.starts_with("5:32"),
        "{fault}"
    );
    assert!(
        fault.contains("name a PEM file with a PRIVATE KEY section"),
        "{fault}"
    );
}

#[test]
fn a_key_of_another_certificate_is_a_fault() {
    let scratch = Scratch::new();
    scratch.certificate("a");
    scratch.certificate("b");
    assert_eq!(
        pair_faults(&scratch, "a.crt", "b.key"),
        [
            "5:32 listen[0].tls.certificates[0].key: this key does not belong to the first \
          certificate of the chain"
        ]
    );
}

#[test]
fn tls_without_certificates_is_a_fault() {
    only(
        "listen:\n  - address: 127.0.0.1:1\n    tls: {}\n",
        "3:5 listen[0].tls.certificates: it is missing: Certificates, picked by SNI; the first is \
         the default. Read again when the files change.",
    );
}

#[test]
fn roots_that_cannot_be_used_are_faults() {
    let lines =
        "upstreams:\n  app:\n    servers: [https://a:1]\n    tls: { ca: none.pem, name: a b }\n";
    let faults = faults(lines);
    assert!(faults[0].starts_with("4:16 upstreams.app.tls.ca: /nowhere/none.pem cannot be read"));
    assert!(faults[1].starts_with("4:32 upstreams.app.tls.name: \"a b\" does not fit here"));
    assert_eq!(faults.len(), 2);
}
