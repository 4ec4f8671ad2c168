// The page: what is shown where, and the loop that keeps it live.

const TONES = { zstd: 0, br: 1, gzip: 2, identity: 3, deflate: 4 };
const byId = (id) => document.getElementById(id);

const SHOWS = {
  answers: { stacked: true },
  bytes: { show: format.bytes },
  cpu: { stacked: true, show: format.percent },
  pool: {},
  wait: { show: format.millis },
  cache: { stacked: true },
  sockets: { stacked: true },
  messages: { stacked: true },
  grpc: { stacked: true },
};
const plots = {};
for (const figure of document.querySelectorAll("[data-plot]")) {
  plots[figure.dataset.plot] = new Plot(figure, SHOWS[figure.dataset.plot]);
}

/** A line for each word of a label. */
function split(name, label, value, tone = (_, index) => index % 8) {
  return words(name, label).map((word, index) => ({ name: word, tone: tone(word, index), values: value(word) }));
}

function coding(word) {
  return TONES[word] ?? 5;
}

function drawPlots() {
  const name = "thinwire_responses_total";
  plots.answers.draw(split(name, "coding", (word) => rates(name, { coding: word }), coding));
  plots.bytes.draw([
    { name: "before", tone: 3, values: rates("thinwire_bytes_before_total") },
    { name: "after", tone: 0, values: rates("thinwire_bytes_after_total") },
  ]);
  const codecs = "thinwire_codec_seconds_total";
  plots.cpu.draw(split(codecs, "route", (route) => rates(codecs, { route }).map((value) => value && value * 100)).map(named));
  plots.pool.draw([
    { name: "busy", tone: 0, values: levels("thinwire_pool_jobs", { state: "running" }) },
    { name: "codec CPU, in threads", tone: 2, values: rates("thinwire_codec_seconds_total") },
    { name: "waiting", tone: 1, values: levels("thinwire_pool_jobs", { state: "waiting" }) },
  ]);
  const waited = (lane) => each(rates("thinwire_pool_wait_seconds_sum", { lane }), rates("thinwire_pool_wait_seconds_count", { lane }), 1e3);
  plots.wait.draw(split("thinwire_pool_wait_seconds_count", "lane", waited));
  const cache = "thinwire_cache_requests_total";
  plots.cache.draw(split(cache, "result", (result) => rates(cache, { result })));
  const sockets = "thinwire_websocket_connections";
  plots.sockets.draw(split(sockets, "extension", (extension) => levels(sockets, { extension })));
  const frames = "thinwire_websocket_messages_total";
  plots.messages.draw(split(frames, "form", (form) => rates(frames, { form })));
  const grpc = "thinwire_grpc_messages_total";
  plots.grpc.draw(split(grpc, "form", (form) => rates(grpc, { form })));
}

/** The route of what has none: densified copies, refused heads. */
function named(line) {
  return line.name === "-" ? { ...line, name: "(no route)" } : line;
}

function drawTiles() {
  const before = growth("thinwire_bytes_before_total");
  const after = growth("thinwire_bytes_after_total");
  const cpu = growth("thinwire_codec_seconds_total");
  const wait = each(rates("thinwire_pool_wait_seconds_sum"), rates("thinwire_pool_wait_seconds_count"), 1e3);
  const asked = growth("thinwire_cache_requests_total") - growth("thinwire_cache_requests_total", { result: "bypass" });
  const kept = ["hit", "stale", "revalidated", "reuse"];
  const found = kept.reduce((sum, result) => sum + growth("thinwire_cache_requests_total", { result }), 0);
  const servers = levels("thinwire_upstream_healthy").at(-1) ?? 0;
  const tiles = [
    [format.number(recent(rates("thinwire_responses_total"))), "answers a second"],
    [before ? format.percent((after / before) * 100) : "-", `of the bytes sent: ${format.bytes(after)} for ${format.bytes(before)}`],
    [format.percent(recent(rates("thinwire_codec_seconds_total")) * 100), `of a core in codecs; ${format.seconds(cpu)} in all`],
    [format.millis(recent(wait)), "mean wait for the pool"],
    [asked ? format.percent((found / asked) * 100) : "-", `from copies, of ${format.number(asked)} asked`],
    [`${servers} of ${places("thinwire_upstream_healthy").length}`, "servers healthy"],
    [format.number(level("thinwire_connections")), `connections, ${format.number(level("thinwire_requests_in_flight"))} requests under way`],
  ];
  byId("tiles").replaceChildren();
  for (const [value, words] of tiles) {
    const tile = element(byId("tiles"), "div", "tile");
    element(tile, "b", "", value);
    element(tile, "span", "", words);
  }
}

/** A table: columns are a title and what makes a cell's text or elements; on a phone each row is a card. */
function table(id, columns, rows) {
  const target = byId(id);
  target.replaceChildren();
  const head = element(element(target, "thead"), "tr");
  for (const { title } of columns) element(head, "th", "", title);
  const body = element(target, "tbody");
  for (const row of rows) {
    const line = element(body, "tr");
    for (const { title, cell } of columns) {
      const made = element(line, "td");
      made.dataset.title = title;
      const value = cell(row);
      if (typeof value === "string") made.textContent = value;
      else made.append(...value);
    }
  }
  if (!rows.length) {
    const none = element(element(body, "tr"), "td", "none", "nothing yet");
    none.colSpan = columns.length;
  }
}

function drawRoutes() {
  const rows = words("thinwire_responses_total", "route").map((route) => {
    const of = (name, labels = {}) => growth(name, { route, ...labels });
    return {
      route, answers: of("thinwire_responses_total"), coded: of("thinwire_responses_total", { reason: "compressed" }),
      before: of("thinwire_bytes_before_total"), after: of("thinwire_bytes_after_total"),
      cpu: of("thinwire_codec_seconds_total"), encoded: of("thinwire_plain_bytes_total"),
      took: of("thinwire_response_seconds_sum"), failed: of("thinwire_responses_total", { status: "5xx" }),
    };
  });
  const some = rows.filter((row) => row.answers > 0).sort((one, other) => other.before - one.before);
  table("routes", [
    { title: "route", cell: (row) => (row.route === "-" ? "(no route)" : row.route) },
    { title: "answers", cell: (row) => format.number(row.answers) },
    { title: "coded", cell: (row) => format.percent((row.coded / row.answers) * 100) },
    { title: "before", cell: (row) => format.bytes(row.before) },
    { title: "after", cell: (row) => format.bytes(row.after) },
    { title: "ratio", cell: (row) => (row.before ? format.percent((row.after / row.before) * 100) : "-") },
    { title: "codec CPU", cell: (row) => format.seconds(row.cpu) },
    { title: "CPU a MiB", cell: (row) => (row.encoded ? format.seconds((row.cpu / row.encoded) * 2 ** 20) : "-") },
    { title: "mean time", cell: (row) => format.seconds(row.took / row.answers) },
    { title: "5xx", cell: (row) => format.number(row.failed) },
  ], some);
}

function drawUpstreams() {
  const name = "thinwire_upstream_requests_total";
  const rows = places("thinwire_upstream_healthy").map((place) => {
    const { upstream, server } = store.series[place][1];
    const of = (...outcomes) => outcomes.reduce((sum, outcome) => sum + growth(name, { upstream, server, outcome }), 0);
    const total = growth(name, { upstream, server });
    return { upstream, server, healthy: level("thinwire_upstream_healthy", { upstream, server }) > 0,
      answered: of("answered"), canceled: of("canceled"), retried: of("retried"), failed: total - of("answered", "canceled", "retried"),
      rate: recent(rates(name, { upstream, server })) };
  });
  rows.sort((one, other) => (one.upstream + one.server).localeCompare(other.upstream + other.server));
  const server = (row) => {
    const dot = document.createElement("span");
    dot.className = row.healthy ? "dot" : "dot ill";
    dot.title = row.healthy ? "healthy" : "left out";
    return [dot, row.server];
  };
  table("upstreams", [
    { title: "server", cell: server },
    { title: "upstream", cell: (row) => row.upstream },
    { title: "a second", cell: (row) => format.number(row.rate) },
    { title: "answered", cell: (row) => format.number(row.answered) },
    { title: "failed", cell: (row) => format.number(row.failed) },
    { title: "retried", cell: (row) => format.number(row.retried) },
    { title: "canceled", cell: (row) => format.number(row.canceled) },
  ], rows);
}

/** Bars of a name, a value and a tone, the largest first. */
function bars(id, rows, show) {
  const target = byId(id);
  target.replaceChildren();
  const some = rows.filter(([, value]) => value > 0).sort(([, one], [, other]) => other - one);
  const most = Math.max(...some.map(([, value]) => value));
  for (const [name, value, tone] of some) {
    const row = element(target, "div", `t${tone}`);
    element(row, "span", "", name);
    const svg = shape(row, "svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    shape(svg, "rect", { class: "track", width: 100, height: 10 });
    shape(svg, "rect", { width: Math.max(0.5, (value / most) * 100), height: 10 });
    element(row, "b", "", show(value));
  }
  if (!some.length) element(target, "p", "none", "nothing yet");
}

function drawBars() {
  const name = "thinwire_responses_total";
  const reasons = words(name, "reason").map((reason) => [reason, growth(name, { reason, coding: "identity" }), 3]);
  bars("reasons", reasons, format.number);
  const codings = words("thinwire_cache_bytes", "coding");
  bars("memory", codings.map((word) => [word, level("thinwire_cache_bytes", { coding: word }), coding(word)]), format.bytes);
}

function draw() {
  const { about } = store;
  byId("state").textContent = about.state;
  byId("state").dataset.state = about.state;
  byId("about").textContent = `${about.version}, process ${about.process}`;
  byId("pool-size").textContent = `${about.pool_threads} threads: busy, and jobs waiting`;
  byId("cache-size").textContent = `${format.bytes(level("thinwire_cache_bytes"))} of ${about.cache_memory}`;
  byId("context").textContent = `${format.bytes(level("thinwire_websocket_context_bytes"))} of context, of ${about.websocket_memory}`;
  byId("board").hidden = false;
  drawTiles();
  drawPlots();
  drawRoutes();
  drawUpstreams();
  drawBars();
}

/** Says that there is nothing new; what is drawn stays. */
function silent(why) {
  byId("state").textContent = why;
  byId("state").dataset.state = "silent";
}

function lock(refused) {
  byId("door").hidden = false;
  byId("board").hidden = true;
  byId("refused").textContent = refused ? "That is not the token." : "";
  silent("locked");
}

async function ask() {
  const token = sessionStorage.getItem("token");
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const after = known();
  const answer = await fetch(`/dashboard.json${after === null ? "" : `?after=${after}`}`, { headers });
  if (answer.status === 401) {
    sessionStorage.removeItem("token");
    lock(token !== null);
    return false;
  }
  if (!answer.ok) throw new Error(`${answer.status}`);
  absorb(await answer.json());
  byId("door").hidden = true;
  draw();
  return true;
}

/** Asks every two seconds, while somebody looks. */
async function live() {
  for (;;) {
    if (!document.hidden) {
      try {
        if (!(await ask())) return;
      } catch (error) {
        silent(`no answer (${error.message})`);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

byId("door").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", byId("token").value);
  byId("token").value = "";
  live();
});
addEventListener("resize", () => Object.values(plots).forEach((plot) => plot.render()));
// Without a token the question alone would be an error in the console.
if (document.documentElement.dataset.locked === undefined || sessionStorage.getItem("token") !== null) live();
else lock(false);
