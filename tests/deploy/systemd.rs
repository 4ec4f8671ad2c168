//! Under systemd: readiness is announced, stopping too, sockets that were handed over are used, the units are sound.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use rustix::process::Signal;

use crate::support::process::Process;
use crate::support::{PATIENCE, folder, get};
use crate::tools::{repository, succeeds};

const YAML: &str = "listen:
  - address: LISTEN
admin:
  address: 127.0.0.1:0
log:
  format: json
upstreams:
  demo: { servers: [demo] }
routes:
  - name: everything
    match: { path: / }
    upstream: demo
";

/// Does what systemd does: opens sockets, says which process they are for, becomes that process.
const MANAGER: &str = r#"
import os, socket, sys
binary, file, *addresses = sys.argv[1:]
sockets = []
for address in addresses:
    if address.startswith("/"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
    else:
        host, port = address.rsplit(":", 1)
        listener = socket.create_server((host, int(port)))
        print("bound %s:%d" % listener.getsockname(), flush=True)
        text = open(file).read()
        open(file, "w").write(text.replace("LISTEN", "%s:%d" % listener.getsockname(), 1))
    listener.listen(16)
    sockets.append(listener)
for number, listener in enumerate(sockets):
    os.dup2(listener.fileno(), 3 + number)
    os.set_inheritable(3 + number, True)
os.environ["LISTEN_PID"] = str(os.getpid())
os.environ["LISTEN_FDS"] = str(len(sockets))
os.execv(binary, [binary, "serve", "--config", file])
"#;

fn manager(file: &std::path::Path, addresses: &[&str]) -> Process {
    let mut command = Command::new("python3");
    command
        .args(["-B", "-c", MANAGER, env!("CARGO_BIN_EXE_thinwire")])
        .arg(file)
        .args(addresses);
    Process::spawn("thinwire", &mut command).unwrap()
}

/// The address that the manager bound, when the proxy is ready.
fn ready(process: &Process) -> std::net::SocketAddr {
    let bound = |line: &str| line.strip_prefix("bound ").map(str::to_owned);
    let address = process.wait_for("its socket", PATIENCE, bound).unwrap();
    let is_ready = |line: &str| line.contains("\"ready\"").then_some(());
    process.wait_for("being ready", PATIENCE, is_ready).unwrap();
    address.parse().unwrap()
}

#[test]
fn readiness_and_stopping_are_announced() {
    let folder = folder("notify");
    let (file, socket) = (folder.join("config.yaml"), folder.join("notify"));
    std::fs::write(&file, YAML.replace("LISTEN", "127.0.0.1:0")).unwrap();
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = || {
        let mut buffer = [0; 256];
        let count = manager.recv(&mut buffer).expect("a state");
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_thinwire"));
    command.arg("serve").arg("--config").arg(&file);
    let mut process = Process::spawn("thinwire", command.env("NOTIFY_SOCKET", &socket)).unwrap();
    assert!(told().starts_with("READY=1\n"));
    process.signal(Signal::TERM);
    assert!(told().starts_with("STOPPING=1\n"));
    assert!(process.exit().success());
}

#[test]
fn a_socket_that_was_handed_over_is_served() {
    let file = folder("activation").join("config.yaml");
    std::fs::write(&file, YAML).unwrap();
    let mut process = manager(&file, &["127.0.0.1:0"]);
    let address = ready(&process);
    get(address, "/", &[]).expect(200);
    // Its own socket could not be bound beside it: this one is the manager's.
    process.signal(Signal::TERM);
    assert!(process.exit().success());
}

#[test]
fn one_that_nobody_asked_for_is_named() {
    let folder = folder("activation");
    let (file, stray) = (folder.join("config.yaml"), folder.join("stray"));
    std::fs::write(&file, YAML).unwrap();
    let process = manager(&file, &["127.0.0.1:0", stray.to_str().unwrap()]);
    let address = ready(&process);
    get(address, "/", &[]).expect(200);
    let named = |line: &str| {
        let is = line.contains("was handed over") && line.contains("stray");
        is.then_some(())
    };
    process
        .wait_for("the stray socket's name", PATIENCE, named)
        .unwrap();
}

#[test]
fn the_address_comes_back_after_reloads() {
    let file = folder("activation").join("config.yaml");
    std::fs::write(&file, YAML).unwrap();
    let process = manager(&file, &["127.0.0.1:0"]);
    let address = ready(&process);
    let yaml = std::fs::read_to_string(&file).unwrap();
    let elsewhere = yaml.replace(&address.to_string(), "127.0.0.1:0");
    let line = |words: &'static str| move |line: &str| line.contains(words).then_some(());
    std::fs::write(&file, elsewhere).unwrap();
    process.signal(Signal::HUP);
    process
        .wait_for("its leave", PATIENCE, line("no longer listening"))
        .unwrap();
    std::fs::write(&file, yaml).unwrap();
    process.signal(Signal::HUP);
    get(address, "/", &[]).expect(200);
}

#[test]
fn the_units_are_sound() {
    let folder = folder("units");
    let unit = std::fs::read_to_string(repository("deploy/systemd/thinwire.service")).unwrap();
    // Verified where it stands: the binary of this build.
    let here = unit.replace("/usr/bin/thinwire", env!("CARGO_BIN_EXE_thinwire"));
    std::fs::write(folder.join("thinwire.service"), here).unwrap();
    std::fs::copy(
        repository("deploy/systemd/thinwire.socket"),
        folder.join("thinwire.socket"),
    )
    .unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).current_dir(&folder);
    let said = succeeds(verify.args(["./thinwire.service", "./thinwire.socket"]));
    assert!(!said.contains("thinwire"), "{said}");
    // 0 is nothing exposed, 10 everything; what is left is the network, which a proxy needs.
    let mut exposure = Command::new("systemd-analyze");
    exposure.args(["security", "--offline=true", "--threshold=20"]);
    succeeds(exposure.arg(folder.join("thinwire.service")));
}

#[test]
fn the_socket_unit_has_the_addresses_of_the_configuration() {
    let read = |file: &str| std::fs::read_to_string(repository(file)).unwrap();
    let (unit, yaml) = (
        read("deploy/systemd/thinwire.socket"),
        read("deploy/systemd/config.yaml"),
    );
    let sockets: Vec<_> = unit
        .lines()
        .filter_map(|line| line.strip_prefix("ListenStream="))
        .collect();
    let listen = yaml.split("admin:").next().unwrap();
    let addresses: Vec<_> = listen
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- address: "))
        .map(|address| address.trim_matches('"'))
        .collect();
    assert_eq!(sockets, addresses);
}
