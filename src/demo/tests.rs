//! The application over real sockets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::OnceLock;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use serde_json::Value;

use super::*;

type Request = http::Request<Full<Bytes>>;
type Response = http::Response<Bytes>;

fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| start().unwrap())
}

fn request(method: &str, target: &str) -> Request {
    let request = http::Request::builder()
        .method(method)
        .uri(target)
        .header("host", "demo");
    request.body(Full::default()).unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn ask(request: Request) -> Response {
    let stream = TcpStream::connect(address()).await.unwrap();
    let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    collect(client.send_request(request).await.unwrap()).await
}

async fn collect(response: http::Response<hyper::body::Incoming>) -> Response {
    let (parts, body) = response.into_parts();
    http::Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
}

fn get(target: &str) -> Response {
    ask(request("GET", target))
}

fn get_with(target: &str, name: &'static str, value: &str) -> Response {
    let mut request = request("GET", target);
    request.headers_mut().insert(name, value.parse().unwrap());
    ask(request)
}

fn json(response: &Response) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

#[test]
fn users_are_ten_thousand_records_of_about_a_megabyte_the_same_each_time() {
    let response = get("/users");
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(
        response.headers()["content-length"],
        response.body().len().to_string()
    );
    assert!((1_050_000..1_250_000).contains(&response.body().len()));
    let users = json(&response);
    assert_eq!(users.as_array().unwrap().len(), 10_000);
    assert_eq!(users[9_999]["id"], 9_999);
    assert_eq!(get("/users").body(), response.body());
}

#[test]
fn any_count_of_users_is_a_prefix_of_more_users() {
    assert_eq!(get("/users?count=0").body(), "[]");
    for count in [1, 7, 9_999, 10_001, 100_000] {
        let users = get(&format!("/users?count={count}"));
        assert_eq!(json(&users).as_array().unwrap().len(), count);
        let shorter = get("/users?count=1").into_body();
        assert!(users.body().starts_with(&shorter[..shorter.len() - 1]));
    }
}

#[test]
fn a_count_out_of_bounds_is_refused_in_a_sentence() {
    for target in [
        "/users?count=100001",
        "/users?count=-1",
        "/users?count=",
        "/events?interval_ms=0",
    ] {
        let response = get(target);
        assert_eq!(response.status(), 400, "{target}");
        assert!(response.body().ends_with(b"please.\n"), "{target}");
    }
}

#[test]
fn the_report_is_the_shortest_array_of_117_kib() {
    let report = get("/report").into_body();
    assert!(report.len() >= 117 * 1024);
    let records: Value = serde_json::from_slice(&report).unwrap();
    let count = records.as_array().unwrap().len();
    assert!(get(&format!("/users?count={}", count - 1)).body().len() < 117 * 1024);
    assert_eq!(get(&format!("/users?count={count}")).body(), &report);
}

#[test]
fn random_bytes_stay_as_many_through_a_codec() {
    let random = get("/random");
    assert_eq!(random.body().len(), 1 << 20);
    assert_eq!(random.headers()["content-type"], "application/octet-stream");
    let mut squeezed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    io::Write::write_all(&mut squeezed, random.body()).unwrap();
    assert!(squeezed.finish().unwrap().len() > 1 << 20);
    let typed = get("/random?type=json");
    assert_eq!(typed.headers()["content-type"], "application/json");
    assert_eq!(typed.body(), random.body());
}

#[test]
fn the_catalogue_is_not_sent_again_to_those_who_have_it() {
    let first = get("/catalogue");
    assert_eq!(first.headers()["cache-control"], "public, max-age=60");
    assert!(json(&first)["articles"].as_array().unwrap().len() > 100);
    let tag = first.headers()["etag"].to_str().unwrap();
    for held in [tag.to_owned(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let again = get_with("/catalogue", "if-none-match", &held);
        assert_eq!(again.status(), 304, "{held}");
        assert_eq!(again.headers()["etag"], tag);
        assert!(again.body().is_empty());
    }
    assert_eq!(
        get_with("/catalogue", "if-none-match", "\"x\"").status(),
        200
    );
}

#[test]
fn the_catalogue_knows_its_date() {
    let date = "Tue, 14 Nov 2023 22:13:20 GMT";
    assert_eq!(get("/catalogue").headers()["last-modified"], date);
    assert_eq!(
        get_with("/catalogue", "if-modified-since", date).status(),
        304
    );
    let earlier = "Tue, 14 Nov 2023 22:13:19 GMT";
    assert_eq!(
        get_with("/catalogue", "if-modified-since", earlier).status(),
        200
    );
}

#[test]
fn events_come_one_by_one_until_their_count() {
    let response = get("/events?count=3&interval_ms=1");
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = std::str::from_utf8(response.body()).unwrap();
    assert_eq!(text.matches("event: tick\ndata: {").count(), 3);
    assert!(text.ends_with("}\n\n"));
}

#[tokio::test]
async fn the_first_event_does_not_wait_for_the_second() {
    let stream = TcpStream::connect(address()).await.unwrap();
    let (mut client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let endless = request("GET", "/events?interval_ms=60000");
    let mut response = client.send_request(endless).await.unwrap();
    let first = response.body_mut().frame().await.unwrap().unwrap();
    assert!(first.into_data().unwrap().starts_with(b"id: 1\n"));
}

#[test]
fn an_upload_is_told_what_arrived_and_how() {
    let mut upload = request("POST", "/upload?x=1");
    upload
        .headers_mut()
        .insert("content-encoding", "gzip".parse().unwrap());
    *upload.body_mut() = Full::from("123456789");
    let report = json(&ask(upload));
    assert_eq!(report["method"], "POST");
    assert_eq!(report["target"], "/upload?x=1");
    assert_eq!(report["content_encoding"], "gzip");
    assert_eq!(report["content_length"], "9");
    assert_eq!(report["transfer_encoding"], Value::Null);
    assert_eq!(report["bytes"], 9);
    // The check value of CRC-32.
    assert_eq!(report["crc32"], "cbf43926");
}

#[test]
fn headers_arrive_in_order_with_their_values() {
    let report = json(&get_with("/headers", "x-forwarded-for", "192.0.2.1"));
    assert_eq!(report["version"], "HTTP/1.1");
    let lines = report["headers"].as_array().unwrap();
    assert!(lines.contains(&serde_json::json!(["x-forwarded-for", "192.0.2.1"])));
}

#[test]
fn head_gets_the_head_of_get() {
    for target in ["/", "/ping", "/users", "/catalogue", "/nowhere"] {
        let (get, head) = (get(target), ask(request("HEAD", target)));
        assert_eq!(head.status(), get.status(), "{target}");
        assert_eq!(
            head.headers()["content-length"],
            get.headers()["content-length"]
        );
        assert_eq!(
            head.headers()["content-type"],
            get.headers()["content-type"]
        );
        assert!(head.body().is_empty());
    }
}

#[test]
fn what_is_not_there_is_404_and_what_is_not_done_405() {
    assert_eq!(get("/nowhere").status(), 404);
    let post = ask(request("POST", "/users"));
    assert_eq!(
        (post.status().as_u16(), &post.headers()["allow"]),
        (405, &"GET, HEAD".parse().unwrap())
    );
    let read = get("/upload");
    assert_eq!(
        (read.status().as_u16(), &read.headers()["allow"]),
        (405, &"POST, PUT".parse().unwrap())
    );
}

#[tokio::test]
async fn it_speaks_h2c_by_prior_knowledge() {
    let stream = TcpStream::connect(address()).await.unwrap();
    let connected = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut client, connection) = connected.unwrap();
    tokio::spawn(connection);
    for method in ["GET", "HEAD"] {
        let target = format!("http://{}/ping", address());
        let ping = http::Request::builder().method(method).uri(target);
        let ping = ping.body(Full::<Bytes>::default()).unwrap();
        let response = collect(client.send_request(ping).await.unwrap()).await;
        assert_eq!(response.version(), http::Version::HTTP_2);
        assert_eq!(response.headers()["content-length"], "5");
        assert_eq!(response.body().is_empty(), method == "HEAD");
    }
}

#[test]
fn the_page_links_to_what_there_is() {
    let page = get("/").into_body();
    let page = std::str::from_utf8(&page).unwrap();
    for link in page
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        let link = link.replace("&amp;", "&");
        assert_eq!(ask(request("HEAD", &link)).status(), 200, "{link}");
    }
}
