"""An ASGI application that compresses nothing: JSON, events, and a WebSocket that ticks."""

import asyncio
import json

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute

ITEMS = [
    {"id": number, "name": f"Item {number}", "price": number * 7 % 100, "stock": number % 13 != 0}
    for number in range(2000)
]


async def items(request):
    return JSONResponse(ITEMS, headers={"cache-control": "public, max-age=60"})


async def events(request):
    async def ticks():
        for number in range(int(request.query_params.get("count", 10))):
            yield f"data: {json.dumps({'tick': number, 'text': 'the same words again'})}\n\n"
            await asyncio.sleep(0.2)

    return StreamingResponse(ticks(), media_type="text/event-stream")


async def healthz(request):
    return PlainTextResponse("ok")


async def ticks(socket):
    await socket.accept()
    for number in range(100):
        await socket.send_json({"tick": number, "bid": 100 + number % 7, "ask": 101 + number % 7})
        await asyncio.sleep(0.1)
    await socket.close()


app = Starlette(
    routes=[
        Route("/items", items),
        Route("/events", events),
        Route("/healthz", healthz),
        WebSocketRoute("/ws/ticks", ticks),
    ]
)
