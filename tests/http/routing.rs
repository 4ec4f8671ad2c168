//! Which route takes a request: by host, path, method, fields, client and listener. Nothing fools it.

use std::net::SocketAddr;

use http::Request;

use crate::support::stream::Stream;
use crate::support::{Conn, Fields, H2, Origin, Proxy, Reply, Setup};

/// Routes that say their names in the answer, before the one for everything.
fn setup(app: &Origin, routes: &[(&str, &str)]) -> Setup {
    let yaml: Vec<_> = routes
        .iter()
        .map(|(name, matches)| named(name, matches))
        .collect();
    Setup::before(app).routes_before(&yaml.join("\n"))
}

fn named(name: &str, matches: &str) -> String {
    let headers = format!("{{ response: {{ set: {{ x-route: {name} }} }} }}");
    format!("- name: {name}\n  match: {matches}\n  upstream: app\n  headers: {headers}")
}

fn taken(reply: &Reply) -> &str {
    match reply.status {
        200 => reply.header("x-route").unwrap_or("everything"),
        400 => "400",
        status => panic!("neither 200 nor 400 but {status}"),
    }
}

/// The route of each target, over HTTP/1.1 and HTTP/2.
fn by_target(proxy: &Proxy, expected: &[(&str, &str)]) {
    let h2 = proxy.h2();
    for (target, route) in expected {
        let reply = proxy.get(target, &[]);
        assert_eq!(taken(&reply), *route, "{target}");
        // The http crate's URIs do not take everything that may come over HTTP/1.
        if target.parse::<http::Uri>().is_ok() {
            assert_eq!(taken(&h2.get(target, &[])), *route, "{target} over h2");
        }
    }
}

fn ok() -> Origin {
    Origin::answer(200, &[], "fine")
}

#[test]
fn hosts_match_in_any_case_without_their_port_and_wildcards_are_not_their_parents() {
    let app = ok();
    let hosts = r#"{ host: ["api.example.com", "*.example.org"] }"#;
    let proxy = setup(&app, &[("api", hosts)]).start();
    let h2 = proxy.h2();
    for (host, route) in [
        ("api.example.com", "api"),
        ("API.Example.COM", "api"),
        ("api.example.com:8080", "api"),
        ("api.example.com.", "api"),
        ("a.example.org", "api"),
        ("a.b.example.org", "api"),
        ("A.EXAMPLE.ORG:81", "api"),
        ("example.org", "everything"),
        ("example.com", "everything"),
        ("xapi.example.com", "everything"),
        ("api.example.com.evil.net", "everything"),
        ("badexample.org", "everything"),
        ("127.0.0.1", "everything"),
    ] {
        let reply = proxy.get("/", &[("Host", host)]);
        assert_eq!(taken(&reply), route, "{host}");
        let request = Request::get(format!("http://{host}/")).body(()).unwrap();
        let reply = h2.begin(request, true).reply();
        assert_eq!(taken(&reply), route, "{host} over h2");
    }
}

#[test]
fn an_h2_request_is_for_its_authority_and_a_host_beside_it_must_agree() {
    let app = ok();
    let proxy = setup(&app, &[("api", "{ host: [api.example.com] }")]).start();
    let h2 = proxy.h2();
    let ask = |uri: &str, host: Option<&str>| {
        let mut request = Request::get(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        h2.begin(request.body(()).unwrap(), true).reply()
    };
    let reply = ask("http://api.example.com/", Some("api.example.com"));
    assert_eq!(taken(&reply), "api");
    assert_eq!(app.last().head.all("host"), ["api.example.com"]);
    // Without :authority, Host says it.
    assert_eq!(taken(&ask("/", Some("api.example.com"))), "api");
    assert_eq!(app.last().head.all("host"), ["api.example.com"]);
    let before = app.requests().len();
    for (uri, host) in [
        ("http://api.example.com/", "other.example.com"),
        ("http://other.example.com/", "api.example.com"),
        ("http://api.example.com/", "api.example.com:81"),
        ("http://api.example.com/", ""),
    ] {
        assert_eq!(ask(uri, Some(host)).status, 400, "{uri} and {host:?}");
    }
    assert_eq!(app.requests().len(), before, "the app was asked");
}

#[test]
fn hosts_that_could_be_read_in_two_ways_are_refused() {
    let app = ok();
    let proxy = setup(&app, &[("api", "{ host: [api.example.com] }")]).start();
    for host in [
        "api.example.com@evil.net",
        "api.example.com/",
        "api.example.com:80:80",
        "api..example.com",
        "api.example.com\\@evil.net",
        "[::1",
        "a b",
    ] {
        assert_eq!(proxy.get("/", &[("Host", host)]).status, 400, "{host}");
    }
    assert!(app.requests().is_empty());
}

#[test]
fn prefixes_end_on_segment_borders_and_exact_paths_match_nothing_else() {
    let app = ok();
    let routes = [
        ("api", "{ path: /api }"),
        ("ws", "{ path: /ws/ }"),
        ("exact", "{ path: =/exact }"),
    ];
    let proxy = setup(&app, &routes).start();
    by_target(
        &proxy,
        &[
            ("/api", "api"),
            ("/api/", "api"),
            ("/api/users/7", "api"),
            ("/api?x=1", "api"),
            ("/apix", "everything"),
            ("/API", "everything"),
            ("/x/api", "everything"),
            ("/?/api", "everything"),
            ("/ws/ticks", "ws"),
            ("/ws/", "ws"),
            ("/ws", "everything"),
            ("/exact", "exact"),
            ("/exact?q", "exact"),
            ("/exact/", "everything"),
            ("/exactly", "everything"),
            ("/", "everything"),
        ],
    );
}

#[test]
fn slashes_dots_and_escapes_do_not_lead_around_a_route() {
    let app = ok();
    let proxy = setup(&app, &[("admin", "{ path: /admin }")]).start();
    by_target(
        &proxy,
        &[
            ("//admin", "admin"),
            ("///admin//x", "admin"),
            ("/./admin", "admin"),
            ("/x/../admin", "admin"),
            ("/x/%2e%2e/admin", "admin"),
            ("/x/.%2E/admin/y", "admin"),
            ("/%61dmin", "admin"),
            ("/a%64min/x", "admin"),
            ("/admin%2Fx", "admin"),
            ("/admin%2fx", "admin"),
            ("%2Fadmin", "400"),
            ("/admin/%2e", "admin"),
            // Out of it again.
            ("/admin/../x", "everything"),
            ("/admin/%2e%2e/x", "everything"),
            // Decoded once, never twice.
            ("/%2561dmin", "everything"),
            // What two servers could take for different paths is for none.
            ("/../admin", "400"),
            ("/%2e%2e/admin", "400"),
            ("/x//../admin", "400"),
            ("/x%2F..%2Fadmin", "400"),
            ("/x%5C..%5Cadmin", "400"),
            ("/x\\..\\admin", "400"),
            ("/admin%00", "400"),
            ("/%zz/admin", "400"),
            ("/admin%", "400"),
        ],
    );
}

#[test]
fn the_app_gets_the_target_as_the_client_wrote_it() {
    let app = ok();
    let proxy = Proxy::before(&app);
    for target in [
        "/a%20b/%7Euser/?q=%2F&x=a+b",
        "/x/../y//z/.",
        "/a%2Fb",
        "/?",
        "/;v=1,2?a=b?c",
    ] {
        proxy.get(target, &[]).expect(200);
        assert_eq!(app.last().head.line, format!("GET {target} HTTP/1.1"));
        proxy.h2().get(target, &[]).expect(200);
        assert_eq!(app.last().head.line, format!("GET {target} HTTP/1.1"));
    }
    proxy.ask("OPTIONS", "*", &[], b"").expect(200);
    assert_eq!(app.last().head.line, "OPTIONS * HTTP/1.1");
}

#[test]
fn methods_and_fields_choose_a_route() {
    let app = ok();
    let routes = [
        ("writes", "{ methods: [POST, PUT] }"),
        ("second", r#"{ headers: { x-version: "2" } }"#),
        ("debug", r#"{ path: /d, headers: { x-debug: "*" } }"#),
    ];
    let proxy = setup(&app, &routes).start();
    let expected: [(&str, &str, Fields<'_>, &str); 10] = [
        ("POST", "/", &[], "writes"),
        ("PUT", "/d", &[("X-Version", "2")], "writes"),
        ("GET", "/", &[], "everything"),
        ("post", "/", &[], "everything"),
        ("GET", "/", &[("X-Version", "2")], "second"),
        (
            "GET",
            "/",
            &[("X-Version", "1"), ("x-version", "2")],
            "second",
        ),
        ("GET", "/", &[("X-Version", "22")], "everything"),
        ("GET", "/d", &[("X-Debug", "")], "debug"),
        ("GET", "/d", &[], "everything"),
        ("GET", "/", &[("X-Debug", "1")], "everything"),
    ];
    for (method, target, fields, route) in expected {
        let reply = proxy.ask(method, target, fields, b"");
        assert_eq!(taken(&reply), route, "{method} {target} {fields:?}");
    }
}

/// A connection to `to` from another loopback address.
fn from(address: [u8; 4], to: SocketAddr) -> Conn {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    Conn::over(Stream::Tcp(socket.into()), to.to_string())
}

#[test]
fn the_address_of_the_client_chooses_a_route_and_what_it_says_of_itself_does_not() {
    let app = ok();
    let proxy = setup(
        &app,
        &[("inside", "{ client: [127.0.0.8/30, 10.0.0.0/8] }")],
    )
    .start();
    let (to, forged) = (proxy.addr(0), [("X-Forwarded-For", "10.0.0.1")]);
    let reply = from([127, 0, 0, 9], to).get("/", &[]);
    assert_eq!(taken(&reply), "inside");
    for address in [[127, 0, 0, 7], [127, 0, 0, 12]] {
        let reply = from(address, to).get("/", &forged);
        assert_eq!(taken(&reply), "everything", "{address:?}");
    }
}

#[test]
fn the_listening_address_chooses_a_route() {
    let app = ok();
    let inner = "- address: 127.0.0.1:0\n- address: 127.0.0.2:0";
    let proxy = setup(&app, &[("inner", r#"{ listener: ["127.0.0.2:0"] }"#)])
        .listen(inner)
        .start();
    assert_eq!(
        taken(&Conn::open(proxy.addr(0)).get("/", &[])),
        "everything"
    );
    assert_eq!(taken(&Conn::open(proxy.addr(1)).get("/", &[])), "inner");
    assert_eq!(taken(&H2::open(proxy.addr(1)).get("/", &[])), "inner");
}

#[test]
fn the_first_route_that_matches_takes_it() {
    let app = ok();
    let routes = [
        ("first", "{ path: /a }"),
        ("second", "{ path: /a/b }"),
        ("third", "{ path: / , methods: [GET] }"),
    ];
    let proxy = setup(&app, &routes).start();
    by_target(&proxy, &[("/a/b", "first"), ("/b", "third")]);
    assert_eq!(taken(&proxy.ask("PUT", "/b", &[], b"")), "everything");
}

#[test]
fn what_no_route_matches_is_a_404_that_leaves_its_record() {
    let app = ok();
    let yaml = Setup::before(&app).yaml();
    let proxy = Proxy::start(&yaml.replace("match: { path: / }", "match: { path: /here }"));
    proxy.get("/here", &[]).expect(200);
    let reply = proxy
        .get("/there", &[("Accept-Encoding", "gzip")])
        .expect(404);
    assert_eq!(
        reply.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(reply.text().starts_with("404 "), "{}", reply.text());
    assert_eq!(proxy.h2().get("/there", &[]).status, 404);
    let head = proxy.ask("HEAD", "/there", &[], b"").expect(404);
    assert!(head.body.is_empty());
    let line = proxy.access("/there");
    assert_eq!(
        (&line["route"], &line["status"]),
        (&"-".into(), &404.into())
    );
    let labels = [("route", "-"), ("status", "404")];
    proxy.until("thinwire_responses_total", &labels, |count| count == 3.0);
    assert_eq!(app.requests().len(), 1);
}
