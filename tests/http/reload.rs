//! Reloads: what they change, what they never disturb, and files that are bad.

use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::{Conn, Origin, Proxy, Setup, Signal, big, eventually, folder};

fn ok() -> Origin {
    Origin::answer(200, &[], "fine")
}

/// A route of this name for everything, which says so.
fn named(app: &Origin, name: &str) -> String {
    let edit = format!("headers: {{ response: {{ set: {{ x-route: {name} }} }} }}");
    Setup::before(app).route(&edit).yaml()
}

fn count(proxy: &Proxy, words: &str) -> usize {
    proxy
        .log()
        .iter()
        .filter(|line| line.contains(words))
        .count()
}

/// Waits until so many reloads are done.
fn reloaded(proxy: &Proxy, times: usize) {
    eventually("the reload", || {
        (count(proxy, "configuration reloaded") >= times).then_some(())
    });
}

#[test]
fn routes_change_for_the_next_request_of_an_open_connection() {
    let app = ok();
    let proxy = Proxy::start(&named(&app, "old"));
    let (mut conn, client) = (proxy.conn(), proxy.h2());
    assert_eq!(conn.get("/", &[]).header("x-route"), Some("old"));
    assert_eq!(client.get("/", &[]).header("x-route"), Some("old"));
    proxy.reload(&named(&app, "new"));
    reloaded(&proxy, 1);
    assert_eq!(conn.get("/", &[]).header("x-route"), Some("new"));
    assert_eq!(client.get("/", &[]).header("x-route"), Some("new"));
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("new"));
    let config = proxy.admin("/config").expect(200).json();
    assert_eq!(
        config["routes"][0]["headers"]["response"]["set"]["x-route"],
        "new"
    );
}

#[test]
fn an_upstream_that_did_not_change_keeps_its_connections_and_one_that_did_is_another() {
    let (app, other) = (ok(), ok());
    let threads = |app: &Origin| Setup::before(app).top("network: { threads: 1 }");
    let proxy = threads(&app).start();
    proxy.get("/", &[]).expect(200);
    proxy.reload(&threads(&app).route("compress: { enabled: false }").yaml());
    reloaded(&proxy, 1);
    proxy.get("/", &[]).expect(200);
    assert_eq!(app.accepted(), 1);
    proxy.reload(&threads(&other).yaml());
    reloaded(&proxy, 2);
    proxy.get("/", &[]).expect(200);
    assert_eq!((app.requests().len(), other.requests().len()), (2, 1));
    eventually("the old app's connections to end", || {
        (app.open() == 0).then_some(())
    });
}

#[test]
fn a_bad_file_changes_nothing_and_its_faults_are_in_the_log() {
    let app = ok();
    let proxy = Proxy::start(&named(&app, "old"));
    let file = proxy.file().display().to_string();
    let bad = named(&app, "new")
        .replace("log:", "logg:")
        .replace("upstream: app", "upstream: none");
    proxy.reload(&bad);
    proxy.wait_for_log("the refusal", |line| line.contains("the running one stays"));
    for key in ["logg", "routes[0].upstream"] {
        let fault = |line: &&String| line.contains(&format!("{file}:")) && line.contains(key);
        assert!(proxy.log().iter().any(|line| fault(&line)), "{key}");
    }
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("old"));
    assert_eq!(proxy.admin("/ready").status, 200);
    // It is not complained of again and again.
    proxy.reload(&named(&app, "new"));
    reloaded(&proxy, 1);
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("new"));
    assert_eq!(count(&proxy, "the running one stays"), 1);
}

#[test]
fn listening_addresses_come_and_go() {
    let app = ok();
    let setup = |listen: &str| Setup::before(&app).listen(listen).yaml();
    let (one, two) = ("- address: 127.0.0.1:0", "- address: 127.0.0.2:0");
    let proxy = Proxy::start(&setup(one));
    let first = proxy.addr(0);
    // An open connection must not keep its address alive.
    let mut open = Conn::open(first);
    open.get("/", &[]).expect(200);
    proxy.reload(&setup(&format!("{one}\n{two}")));
    reloaded(&proxy, 1);
    let url = "listening on http://127.0.0.2:";
    let line = proxy.wait_for_log("the second address", |line| line.contains(url));
    let port = line.split_once(url).expect("a port").1;
    let port: u16 = port
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let second = ([127, 0, 0, 2], port).into();
    Conn::open(second).get("/", &[]).expect(200);
    Conn::open(first).get("/", &[]).expect(200);
    proxy.reload(&setup(two));
    reloaded(&proxy, 2);
    eventually("the first address to be closed", || {
        TcpStream::connect(first).err()
    });
    Conn::open(second).get("/", &[]).expect(200);
    open.get("/", &[]).expect(200);
}

#[test]
fn an_address_that_cannot_be_had_leaves_everything_as_it_was() {
    let app = ok();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(&named(&app, "old"));
    let listen = format!(
        "- address: 127.0.0.1:0\n- address: {}",
        taken.local_addr().unwrap()
    );
    proxy.reload(&Setup::before(&app).listen(&listen).yaml());
    proxy.wait_for_log("the refusal", |line| {
        line.contains("the running configuration stays")
    });
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("old"));
}

#[test]
fn what_runs_finishes_under_the_configuration_it_began_with() {
    let go = Signal::new();
    let held = go.clone();
    let app = Origin::start(move |call| {
        call.raw_head(200, &[("Content-Length", "8")])?;
        call.send("first")?;
        call.wait(&held);
        call.send("end")
    });
    let other = Origin::answer(200, &[], "other");
    let proxy = Proxy::start(&named(&app, "old"));
    let mut conn = proxy.conn();
    conn.request("GET", "/held", &[], b"");
    let mut stream = proxy.h2().start("GET", "/held", &[], true);
    let heads = (conn.head(), stream.head());
    proxy.reload(&named(&other, "new"));
    reloaded(&proxy, 1);
    assert_eq!(proxy.get("/", &[]).body, b"other");
    go.fire();
    assert_eq!(conn.rest(heads.0).body, b"firstend");
    assert_eq!(stream.rest(heads.1).body, b"firstend");
    assert_eq!(conn.get("/", &[]).header("x-route"), Some("new"));
}

#[test]
fn a_hundred_reloads_under_load_drop_nothing() {
    let app = Origin::json(big());
    let mut proxy = Proxy::start(&named(&app, "r0"));
    let (stop, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let asking = |ask: &mut dyn FnMut() -> Vec<u8>| {
        while !stop.load(Ordering::SeqCst) {
            assert_eq!(ask(), big());
            answers.fetch_add(1, Ordering::SeqCst);
        }
    };
    let gzip = [("accept-encoding", "gzip")];
    std::thread::scope(|scope| {
        let proxy = &proxy;
        let mut workers = Vec::new();
        workers.push(scope.spawn(move || {
            let mut conn = proxy.conn();
            asking(&mut || conn.get("/", &gzip).expect(200).decoded());
        }));
        workers.push(scope.spawn(move || {
            let client = proxy.h2();
            asking(&mut || client.get("/", &gzip).expect(200).decoded());
        }));
        workers
            .push(scope.spawn(move || asking(&mut || proxy.get("/", &gzip).expect(200).decoded())));
        for turn in 1..=100 {
            let before = answers.load(Ordering::SeqCst);
            proxy.reload(&named(&app, &format!("r{turn}")));
            reloaded(proxy, turn);
            // Somebody is answered within each configuration, or fails.
            eventually("an answer", || {
                let over = workers.iter().any(|worker| worker.is_finished());
                (over || answers.load(Ordering::SeqCst) > before).then_some(())
            });
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("r100"));
    assert!(proxy.process().is_running());
    let lines = proxy.access_lines();
    assert!(
        lines
            .iter()
            .all(|line| line["status"] == 200 && line["ended_by"].is_null())
    );
}

#[test]
fn new_content_is_noticed_without_a_signal_also_behind_a_swapped_link() {
    let app = ok();
    // As Kubernetes mounts a ConfigMap: config.yaml -> ..data/config.yaml, ..data -> a folder.
    let mount = folder("configmap");
    for (name, route) in [("one", "old"), ("two", "new")] {
        std::fs::create_dir(mount.join(name)).unwrap();
        std::fs::write(mount.join(name).join("config.yaml"), named(&app, route)).unwrap();
    }
    symlink("one", mount.join("..data")).unwrap();
    symlink("..data/config.yaml", mount.join("config.yaml")).unwrap();
    let proxy = Proxy::try_start_file(&mount.join("config.yaml")).expect("a proxy");
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("old"));
    symlink("two", mount.join("next")).unwrap();
    std::fs::rename(mount.join("next"), mount.join("..data")).unwrap();
    reloaded(&proxy, 1);
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("new"));
}

#[test]
fn a_file_that_is_gone_for_a_moment_is_no_reason_to_stop() {
    let app = ok();
    let proxy = Proxy::start(&named(&app, "old"));
    std::fs::remove_file(proxy.file()).unwrap();
    proxy.wait_for_log("the complaint", |line| {
        line.contains("the running one stays")
    });
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("old"));
    std::fs::write(proxy.file(), named(&app, "new")).unwrap();
    reloaded(&proxy, 1);
    assert_eq!(proxy.get("/", &[]).header("x-route"), Some("new"));
}

#[test]
fn what_a_reload_cannot_change_is_said() {
    let app = ok();
    let proxy = Setup::before(&app).top("pool: { threads: 1 }").start();
    proxy.reload(&Setup::before(&app).top("pool: { threads: 2 }").yaml());
    reloaded(&proxy, 1);
    proxy.wait_for_log("the warning", |line| {
        line.contains("pool changed: that needs a restart")
    });
    proxy.get("/", &[]).expect(200);
}
