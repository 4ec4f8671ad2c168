"""Looks at the dashboard in headless Chromium, as a person would: wide and on a phone, light and dark.

    look.py URL FOLDER [TOKEN]

Screenshots go into FOLDER; what was seen is printed as one JSON object a look. Exit status 1: the
page had errors, did not fill, or scrolls sideways.
"""

import asyncio
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import websockets

LOOKS = [
    ("wide-light", 1280, 900, "light"),
    ("wide-dark", 1280, 900, "dark"),
    ("phone-light", 375, 812, "light"),
    ("phone-dark", 375, 812, "dark"),
]

# What the page has to show before it is looked at.
FILLED = """
    !document.querySelector('#board').hidden &&
    document.querySelectorAll('#tiles .tile').length > 0 &&
    document.querySelectorAll('[data-plot=answers] path').length > 0 &&
    document.querySelectorAll('#routes tbody tr').length > 0
"""

SEEN = """JSON.stringify({
    state: document.querySelector('#state').textContent,
    tiles: [...document.querySelectorAll('.tile')].map((tile) => tile.innerText.replace('\\n', ' ')),
    routes: [...document.querySelectorAll('#routes tbody tr td:first-child')].map((cell) => cell.textContent),
    reasons: [...document.querySelectorAll('#reasons div span')].map((cell) => cell.textContent),
    servers: [...document.querySelectorAll('#upstreams tbody td:first-child')].map((cell) => cell.textContent),
    plots: [...document.querySelectorAll('[data-plot]')].map((plot) => plot.dataset.plot),
    background: getComputedStyle(document.body).backgroundColor,
    wider: document.documentElement.scrollWidth - innerWidth,
})"""


class Tab:
    """One page, spoken to by the DevTools protocol."""

    def __init__(self, socket, locked):
        self.socket = socket
        self.locked = locked
        self.next = 0
        self.errors = []

    async def call(self, method, **params):
        self.next += 1
        mine = self.next
        await self.socket.send(json.dumps({"id": mine, "method": method, "params": params}))
        while True:
            message = json.loads(await asyncio.wait_for(self.socket.recv(), 60))
            self.note(message)
            if message.get("id") == mine:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def note(self, message):
        """Keeps what a person would find red in the console."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str([argument.get("value") for argument in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            # Chromium itself notes the 401 that the page comes with.
            if self.locked and entry.get("url") == self.locked and "401" in entry["text"]:
                return
            self.errors.append(f"{entry['text']} {entry.get('url', '')}")

    async def value(self, expression):
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    async def until(self, expression, what):
        for _ in range(300):
            if await self.value(expression):
                return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"waited in vain for {what}: {self.errors}")


async def look(tab, url, folder, token, name, width, height, scheme):
    await tab.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
    )
    feature = {"name": "prefers-color-scheme", "value": scheme}
    await tab.call("Emulation.setEmulatedMedia", features=[feature])
    await tab.call("Page.navigate", url=url)
    if token:
        await tab.until("document.querySelector('#door')?.hidden === false || " + FILLED, "the question for the token")
        await tab.value(
            f"document.querySelector('#token').value = {json.dumps(token)};"
            "document.querySelector('#door button').click()"
        )
    await tab.until(FILLED, "the page to fill")
    seen = json.loads(await tab.value(SEEN))
    size = await tab.call("Page.getLayoutMetrics")
    tall = size["cssContentSize"]["height"]
    clip = {"x": 0, "y": 0, "width": width, "height": tall, "scale": 1}
    shot = await tab.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    (folder / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
    return {"look": name, **seen, "errors": tab.errors}


async def run(url, folder, token, port):
    async with websockets.connect(port, max_size=None) as socket:
        tab = Tab(socket, url if token else None)
        for domain in ("Page", "Runtime", "Log"):
            await tab.call(f"{domain}.enable")
        fine = True
        for name, width, height, scheme in LOOKS:
            seen = await look(tab, url, folder, token, name, width, height, scheme)
            print(json.dumps(seen), flush=True)
            fine = fine and not seen["errors"] and seen["wider"] <= 0
            # A token is asked for once a tab.
            token = None
        return fine


def devtools(browser, profile):
    """The address of the one tab, as Chromium writes it down."""
    import time
    import urllib.request

    written = profile / "DevToolsActivePort"
    for _ in range(600):
        if browser.poll() is not None:
            raise RuntimeError(f"chromium ended with {browser.returncode}")
        if written.exists() and written.read_text().strip():
            port = written.read_text().split()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            if tabs:
                return tabs[0]["webSocketDebuggerUrl"]
        time.sleep(0.1)
    raise RuntimeError("chromium did not start")


def main():
    url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    token = sys.argv[3] if len(sys.argv) > 3 else None
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        profile = pathlib.Path(profile)
        browser = subprocess.Popen(
            [
                chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            fine = asyncio.run(run(url, folder, token, devtools(browser, profile)))
        finally:
            browser.terminate()
            browser.wait(30)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
