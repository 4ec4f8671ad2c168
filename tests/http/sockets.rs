//! Unix sockets on both sides.

use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::support::{Conn, Origin, Proxy, Setup, big, curl, folder};

fn path() -> PathBuf {
    let path = folder("edge").join("http.sock");
    assert!(
        path.as_os_str().len() < 100,
        "no socket fits below {}",
        path.display()
    );
    path
}

/// Listens here alone.
fn setup(app: &Origin, path: &Path) -> Setup {
    Setup::before(app).listen(&format!("- address: \"unix:{}\"", path.display()))
}

#[test]
fn a_client_on_a_unix_socket_is_served_by_an_app_on_another() {
    let app = Origin::unix(|call| {
        let body = call.body()?;
        call.answer(200, &[("Content-Type", "application/json")], &body)
    });
    let path = path();
    let proxy = setup(&app, &path).start();
    assert_eq!(proxy.addresses(), [format!("unix:{}", path.display())]);
    let mut conn = Conn::unix(&path);
    for _ in 0..2 {
        let reply = conn
            .ask("POST", "/x", &[("Accept-Encoding", "gzip")], &big())
            .expect(200);
        assert_eq!((reply.coding(), reply.decoded()), ("gzip", big()));
    }
    let head = app.last().head;
    assert_eq!(head.field("host"), Some("localhost"));
    assert_eq!(head.field("x-forwarded-for"), None, "it has no address");
    let line = proxy.access("/x");
    assert!(line["client"].is_null(), "{line}");
    assert_eq!(line["upstream"], app.server());
}

#[test]
fn curl_speaks_both_protocols_over_a_unix_socket() {
    let app = Origin::json(big());
    let path = path();
    let _proxy = setup(&app, &path).start();
    for option in ["--http1.1", "--http2-prior-knowledge"] {
        let socket = ["--unix-socket", path.to_str().unwrap()];
        let curled = curl(&[&socket[..], &["--compressed", option, "http://any/"]].concat());
        assert_eq!(
            (curled.status, &curled.body),
            (0, &big()),
            "{option}: {}",
            curled.errors
        );
    }
}

#[test]
fn a_socket_that_nobody_listens_on_any_more_is_replaced() {
    let app = Origin::answer(200, &[], "fine");
    let path = path();
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the dead process's socket");
    let proxy = setup(&app, &path).start();
    Conn::unix(&path).get("/", &[]).expect(200);
    assert!(proxy.stop().success());
    let _again = setup(&app, &path).start();
    Conn::unix(&path).get("/", &[]).expect(200);
}

#[test]
fn a_socket_in_use_and_a_file_that_is_none_are_left_alone() {
    let app = Origin::answer(200, &[], "fine");
    let path = path();
    let _first = setup(&app, &path).start();
    let second = Proxy::try_start(&setup(&app, &path).yaml()).expect_err("the address is in use");
    assert!(second.contains("cannot listen"), "{second}");
    Conn::unix(&path).get("/", &[]).expect(200);
    let file = folder("edge").join("precious");
    std::fs::write(&file, "text").unwrap();
    let error = Proxy::try_start(&setup(&app, &file).yaml()).expect_err("no socket");
    assert!(error.contains("cannot listen"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
    assert!(!file.metadata().unwrap().file_type().is_socket());
}

#[test]
fn an_app_whose_socket_is_missing_is_a_502_until_it_is_there() {
    let app = Origin::answer(200, &[], "fine");
    let path = path();
    let yaml = Setup::before(&app)
        .yaml()
        .replace(&app.server(), &format!("unix:{}", path.display()));
    let proxy = Proxy::start(&yaml);
    assert_eq!(proxy.get("/", &[]).status, 502);
    let listener = UnixListener::bind(&path).unwrap();
    let served = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let read = stream.read(&mut head).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nback")
            .unwrap();
        String::from_utf8_lossy(&head[..read]).into_owned()
    });
    assert_eq!(proxy.get("/", &[]).expect(200).body, b"back");
    assert!(served.join().unwrap().starts_with("GET / HTTP/1.1\r\n"));
}
