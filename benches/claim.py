#!/usr/bin/env python3
"""The claim in one table: what compression costs an application, and its neighbours on the event loop.

    cargo build --release && benches/claim.py [--seconds 10] [--clients 16] [--rate 400]

A uvicorn + Starlette application answers 117 KiB of JSON to 16 clients that take gzip, in four shapes: plain, plain
behind Thinwire, with Starlette's GZipMiddleware as it comes, and with `thread_minimum_size=0`, which compresses on
threads. Each gets the same requests a second, as far as it can: an event loop that is handed many requests at a time
spends less on each, so that costs can be compared at like rates only. Beside them one client asks the application
itself for `/ping`, up to fifty times a second. The application has core 0 for itself; everything else is on core 1.
CPU is the process' own, user and system, from /proc; latencies are wall time as the client sees them.
"""

import argparse
import asyncio
import itertools
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import venv

TOP = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"))
BINARY = TARGET / "release" / "thinwire"
APP = '''
import json, os, random
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

randomness = random.Random(7)
rows = [{"id": i, "name": f"user {i}", "email": f"user{i}@example.com", "ref": "%012x" % randomness.getrandbits(48),
         "active": i % 5 > 0} for i in range(1110)]
body = json.dumps(rows).encode()
# No two answers are alike: neither side can take what it compressed before.
count = 0

async def report(request):
    global count
    count += 1
    return Response(b'{"n":%12d,"rows":' % count + body + b"}", media_type="application/json")

async def ping(request):
    return PlainTextResponse("pong")

shapes = {"plain": [], "gzip": [Middleware(GZipMiddleware)],
          "threads": [Middleware(GZipMiddleware, thread_minimum_size=0)]}
app = Starlette(routes=[Route("/report", report), Route("/ping", ping)], middleware=shapes[os.environ["SHAPE"]])
'''
CONFIG = """
listen: [{{ address: "127.0.0.1:{port}" }}]
admin: {{ address: "127.0.0.1:{admin}" }}
log: {{ access: false }}
upstreams: {{ app: {{ servers: ["http://127.0.0.1:{app}"] }} }}
routes: [{{ name: all, match: {{ path: / }}, upstream: app }}]
"""
SHAPES = [("plain", "plain", False), ("behind Thinwire", "plain", True), ("GZipMiddleware", "gzip", False),
          ("GZipMiddleware, thread_minimum_size=0", "threads", False)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def python():
    """An interpreter that has the application's packages."""
    place = TARGET / "claim-python"
    if not (place / "ready").exists():
        venv.create(place, with_pip=True)
        wanted = TOP / "tests" / "support" / "requirements.txt"
        subprocess.run([place / "bin" / "pip", "install", "-q", "-r", wanted], check=True)
        (place / "ready").touch()
    return place / "bin" / "python"


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ask(reader, writer, target, coding):
    """One exchange; the body's bytes as they came."""
    writer.write(f"GET {target} HTTP/1.1\r\nhost: bench\r\naccept-encoding: {coding}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    assert head.startswith("http/1.1 200"), head
    if "content-length:" in head:
        return len(await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0])))
    size = 0
    while True:
        chunk = int(await reader.readline(), 16)
        await reader.readexactly(chunk + 2)
        size += chunk
        if not chunk:
            return size


async def load(port, until, coding, sizes, due):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (begin := next(due)) < until and time.monotonic() < until:
        await asyncio.sleep(max(0, begin - time.monotonic()))
        sizes.append(await ask(reader, writer, "/report", coding))
    writer.close()


async def probe(port, until, times):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        begun = time.perf_counter()
        await ask(reader, writer, "/ping", "identity")
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.02)
    writer.close()


def ready(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def measure(shape, behind, options, folder):
    app_port, port, admin = free_port(), free_port(), free_port()
    command = [python(), "-m", "uvicorn", "--no-access-log", "--log-level", "warning", "--port", str(app_port), "claim_app:app"]
    running = [subprocess.Popen(["taskset", "-c", "0", *command], cwd=folder, env={**os.environ, "SHAPE": shape})]
    ready(app_port)
    if behind:
        config = pathlib.Path(folder) / "claim.yaml"
        config.write_text(CONFIG.format(port=port, admin=admin, app=app_port))
        serve = ["taskset", "-c", "1", BINARY, "serve", "--config", config]
        running.append(subprocess.Popen(serve, stdout=subprocess.DEVNULL))
        ready(port)
    try:
        entry = port if behind else app_port
        coding = "gzip" if behind or shape != "plain" else "identity"

        async def run(seconds):
            sizes, times = [], []
            begun = time.monotonic()
            until = begun + seconds
            due = (begun + number / options.rate for number in itertools.count())
            clients = [load(entry, until, coding, sizes, due) for _ in range(options.clients)]
            await asyncio.gather(*clients, probe(app_port, until, times))
            return sizes, sorted(times)

        asyncio.run(run(2))
        before = [cpu_seconds(process.pid) for process in running]
        sizes, times = asyncio.run(run(options.seconds))
        spent = [cpu_seconds(process.pid) - was for process, was in zip(running, before)]
        per = [1000 * cpu / len(sizes) for cpu in spent] + [0.0]
        return len(sizes) / options.seconds, sum(sizes) // len(sizes), per[0], per[1], 1000 * times[len(times) * 99 // 100]
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--seconds", type=float, default=10)
    words.add_argument("--clients", type=int, default=16)
    words.add_argument("--rate", type=float, default=400)
    options = words.parse_args()
    os.sched_setaffinity(0, {1})
    print("| | responses/s | bytes | app CPU, ms | proxy CPU, ms | app's /ping p99, ms |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "claim_app.py").write_text(APP)
        for name, shape, behind in SHAPES:
            rate, size, app, proxy, p99 = measure(shape, behind, options, folder)
            print(f"| {name} | {rate:.0f} | {size:,} | {app:.2f} | {proxy:.2f} | {p99:.1f} |", flush=True)


main()
