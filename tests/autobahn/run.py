"""Starts an echoing application, Thinwire before it, and Autobahn's fuzzing client; sums its report up."""

import asyncio
import collections
import json
import pathlib
import re
import subprocess
import sys

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

CASES = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*", "12.*", "13.*"]

CONFIG = """
listen: [{{ address: "127.0.0.1:0" }}]
admin: {{ address: "127.0.0.1:0" }}
upstreams: {{ app: {{ servers: ["http://127.0.0.1:{port}"] }} }}
routes: [{{ name: all, match: {{ path: / }}, upstream: app }}]
"""


async def echo(socket):
    try:
        async for message in socket:
            await socket.send(message)
    except ConnectionClosed:
        pass  # The suite leaves in every way there is.


async def proxy(binary, folder, port):
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(port=port))
    process = await asyncio.create_subprocess_exec(
        binary, "serve", "--config", config, stdout=(folder / "thinwire.log").open("wb")
    )
    while True:
        await asyncio.sleep(0.1)
        found = re.search(r"listening on http://(\S+)", (folder / "thinwire.log").read_text())
        if found:
            return process, found.group(1)


def summary(folder):
    index = json.loads((folder / "reports" / "index.json").read_text())
    verdicts = collections.Counter()
    for cases in index.values():
        for case, found in sorted(cases.items()):
            verdict = (found["behavior"], found["behaviorClose"])
            verdicts[verdict] += 1
            if verdict[0] not in ("OK", "INFORMATIONAL", "NON-STRICT") or verdict[1] not in ("OK", "INFORMATIONAL"):
                print(case, *verdict)
    for (behavior, close), count in sorted(verdicts.items()):
        print(f"{count:4} {behavior}, close {close}")
    return all(v[0] in ("OK", "INFORMATIONAL", "NON-STRICT") for v in verdicts)


async def main(binary, python2, folder, *cases):
    folder = pathlib.Path(folder)
    async with serve(echo, "127.0.0.1", 0, compression=None, max_size=None, ping_interval=None) as server:
        process, address = await proxy(binary, folder, server.sockets[0].getsockname()[1])
        spec = {
            "outdir": str(folder / "reports"),
            "servers": [{"agent": "thinwire", "url": f"ws://{address}/"}],
            "cases": list(cases) or CASES,
            "exclude-cases": [],
            "exclude-agent-cases": {},
        }
        (folder / "spec.json").write_text(json.dumps(spec))
        client = "from autobahntestsuite.wstest import run; run()"
        fuzzing = await asyncio.create_subprocess_exec(
            python2, "-c", client, "-m", "fuzzingclient", "-s", folder / "spec.json",
            stdout=(folder / "autobahn.log").open("wb"), stderr=subprocess.STDOUT,
        )
        await fuzzing.wait()
        process.terminate()
        await process.wait()
    sys.exit(0 if summary(folder) else 1)


asyncio.run(main(*sys.argv[1:]))
