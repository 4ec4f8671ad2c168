"""A real application for the tests: `app` answers plain, `squeezed` is the same with Starlette's GZipMiddleware.

Deterministic, and free of any knowledge of what stands in front of it.
"""
import asyncio
import hashlib
import json

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute


def records(size):
    """The shortest JSON array of records that is at least `size` bytes."""
    parts, total = [], 1
    while total < size:
        i = len(parts)
        ref = hashlib.sha256(str(i).encode()).hexdigest()[:12]
        record = {"id": i, "name": f"User {i % 97}", "email": f"user.{i}@example.com", "ref": ref, "active": i % 5 > 0}
        parts.append(json.dumps(record, separators=(",", ":")))
        total += len(parts[-1]) + 1
    return ("[" + ",".join(parts) + "]").encode()


JSON_117K = records(117 * 1024)
ETAG = '"' + hashlib.sha256(JSON_117K).hexdigest()[:16] + '"'


async def ping(request):
    return PlainTextResponse("pong\n")


async def report(request):
    """117 KiB of JSON in one piece."""
    return Response(JSON_117K, media_type="application/json")


async def of_size(request):
    """JSON of about this many bytes."""
    return Response(records(request.path_params["size"]), media_type="application/json")


async def stream(request):
    """The report in ?pieces=N with a pause of ?pause_ms=M between them, no length announced."""
    pieces = int(request.query_params.get("pieces", 8))
    pause = int(request.query_params.get("pause_ms", 0)) / 1000
    step = -(-len(JSON_117K) // pieces)

    async def body():
        for start in range(0, len(JSON_117K), step):
            if start and pause:
                await asyncio.sleep(pause)
            yield JSON_117K[start:start + step]

    return StreamingResponse(body(), media_type="application/json")


async def events(request):
    """?count=N server-sent events, ?interval_ms=M apart."""
    count = int(request.query_params.get("count", 3))
    interval = int(request.query_params.get("interval_ms", 100)) / 1000

    async def body():
        for number in range(1, count + 1):
            if number > 1:
                await asyncio.sleep(interval)
            yield f"id: {number}\ndata: {json.dumps({'number': number})}\n\n"

    return StreamingResponse(body(), media_type="text/event-stream", headers={"cache-control": "no-cache"})


async def upload(request):
    """What arrived: method, headers in order, how many bytes, their SHA-256."""
    digest, size = hashlib.sha256(), 0
    async for piece in request.stream():
        digest.update(piece)
        size += len(piece)
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in request.headers.raw]
    return JSONResponse({"method": request.method, "path": request.url.path, "query": request.url.query,
                         "headers": headers, "bytes": size, "sha256": digest.hexdigest()})


async def tagged(request):
    """The report with a strong ETag; 304 for those who have it."""
    held = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    headers = {"etag": ETAG, "cache-control": "no-cache"}
    if ETAG in held:
        return Response(status_code=304, headers=headers)
    return Response(JSON_117K, media_type="application/json", headers=headers)


async def cookies(request):
    """Two cookies, on two lines."""
    response = JSONResponse(dict(request.cookies))
    response.set_cookie("first", "1", path="/")
    response.set_cookie("second", "2", httponly=True)
    return response


async def redirect(request):
    return RedirectResponse("/ping", status_code=307)


async def nothing(request):
    return Response(status_code=204)


async def fails(request):
    """Breaks off in the middle of a body."""
    async def body():
        yield JSON_117K[:50_000]
        raise RuntimeError("on purpose")

    return StreamingResponse(body(), media_type="application/json")


async def echo(websocket):
    """Every text message back, until the client closes."""
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)


ROUTES = [
    WebSocketRoute("/echo", echo),
    Route("/ping", ping),
    Route("/report", report),
    Route("/of/{size:int}", of_size),
    Route("/stream", stream),
    Route("/events", events),
    Route("/upload", upload, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    Route("/tagged", tagged),
    Route("/cookies", cookies),
    Route("/redirect", redirect),
    Route("/nothing", nothing),
    Route("/fails", fails),
]

app = Starlette(routes=ROUTES)
squeezed = Starlette(routes=ROUTES, middleware=[Middleware(GZipMiddleware, minimum_size=500)])
