"""The JSON interface: every question at a path of its own, what it takes, and a page that says so.

``POST /api/ask`` with an object of JSON answers with one: 200 an answer, "no" included; 400 bad input;
504 no answer within the budget. The body of an error has its line as ``error``.
"""

from __future__ import annotations

import asyncio
import json
from html import escape
from typing import TYPE_CHECKING, Any, Final

from lbm.errors import LbmError, RequestError, suggested
from lbm.views.studio.questions import QUESTIONS
from lbm.views.studio.worker import written
from lbm.views.studio.workers import Reply, Workers

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

STATUS: Final = {0: 200, 1: 200, 2: 400, 3: 504}
"""Statuses of HTTP by those of the command line."""

NIXON: Final = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"
"""The theory of the examples on the page."""


def routes(pool: Workers) -> list[Route]:
    """Return the paths of the interface, answered by these workers."""
    from starlette.responses import HTMLResponse
    from starlette.responses import Response as Plain
    from starlette.routing import Route

    def said(status: int, body: dict[str, Any]) -> Response:
        return Plain(
            written(body), status, media_type="application/json", headers={"cache-control": "no-store"}
        )

    async def asked(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in QUESTIONS:
            advice = suggested(name, QUESTIONS, ": GET /api lists them")
            return said(404, Reply.of(RequestError(f"no question {name[:100]!r}{advice}")).body)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            body = Reply.of(RequestError("expected Content-Type: application/json")).body
            return said(415, body)
        try:
            read = read_json(await request.body())
        except LbmError as error:
            return said(400, Reply.of(error).body)
        reply = await _unless_gone(request, pool, name, read)
        return said(STATUS[reply.status], reply.body)

    async def health(_: Request) -> Response:
        return said(200, health_of(pool))

    async def described(_: Request) -> Response:
        return said(200, openapi(pool.most))

    async def page(_: Request) -> Response:
        return HTMLResponse(page_of(pool.most))

    return [
        Route("/api", page, methods=["GET"]),
        Route("/api/health", health, methods=["GET"]),
        Route("/openapi.json", described, methods=["GET"]),
        Route("/api/{name}", asked, methods=["POST"]),
    ]


async def _unless_gone(request: Request, pool: Workers, name: str, said: Any) -> Reply:
    """Return the reply to a question; where whoever asked goes away, it is taken back."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    asked, left = asyncio.ensure_future(pool.ask(name, said)), asyncio.ensure_future(gone())
    try:
        await asyncio.wait([asked, left], return_when="FIRST_COMPLETED")
        if asked.done():
            return asked.result()
        return Reply(3, {"error": "whoever asked has gone", "kind": "NoAnswer"})
    finally:
        for task in (asked, left):
            task.cancel()
        await asyncio.gather(asked, left, return_exceptions=True)


def read_json(data: bytes) -> Any:
    """Return what JSON says; anything that is none is one clear error.

    >>> read_json(b'{"a": NaN}')
    Traceback (most recent call last):
    lbm.errors.RequestError: expected JSON, got the constant NaN
    """

    def refuse(constant: str) -> None:
        raise RequestError(f"expected JSON, got the constant {constant}")

    try:
        return json.loads(data.decode(), parse_constant=refuse)
    except RequestError:
        raise
    except json.JSONDecodeError as error:
        raise RequestError(f"expected JSON, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise RequestError("expected JSON that is not so deep") from None
    except ValueError as error:  # no UTF-8, or a number of thousands of digits
        raise RequestError(f"expected JSON in UTF-8: {' '.join(str(error).split())[:200]}") from None


def health_of(pool: Workers) -> dict[str, Any]:
    """Return how the server is."""
    from lbm import __version__

    return {
        "status": "ok",
        "version": __version__,
        "questions": list(QUESTIONS),
        "models": list(pool.models),
        "workers": {"ready": len(pool.ready), "busy": len(pool.busy), "waiting": pool.waiting},
    }


def openapi(most: float) -> dict[str, Any]:
    """Return the description of the interface that programs read (OpenAPI)."""
    from lbm import __version__

    error = {
        "type": "object",
        "properties": {"error": {"type": "string"}, "kind": {"type": "string"}},
        "required": ["error", "kind"],
    }

    def content(schema: dict[str, Any], about: str) -> dict[str, Any]:
        return {"description": about, "content": {"application/json": {"schema": schema}}}

    def path(name: str) -> dict[str, Any]:
        body = {"required": True, "content": {"application/json": {"schema": QUESTIONS[name].schema(most)}}}
        answers = {
            "200": content({"type": "object"}, "What was found; answer: false where no world is possible."),
            "400": content(error, "Bad input, in one line."),
            "504": content(error, "No answer within the budget."),
        }
        about = QUESTIONS[name].about
        return {"post": {"operationId": name, "summary": about, "requestBody": body, "responses": answers}}

    health = {
        "get": {"operationId": "health", "responses": {"200": content({"type": "object"}, "How it is.")}}
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "lbm studio", "version": __version__},
        "paths": {f"/api/{name}": path(name) for name in QUESTIONS} | {"/api/health": health},
    }


def page_of(most: float) -> str:
    """Return the page of the interface: it loads nothing, from here or elsewhere."""
    parts = []
    for name, question in QUESTIONS.items():
        schema = question.schema(most)
        rows = "".join(
            f"<tr><td><code>{escape(key)}</code>{' *' if key in schema['required'] else ''}</td>"
            f"<td>{escape(_type(value))}</td><td>{escape(value['description'])}</td></tr>"
            for key, value in schema["properties"].items()
        )
        parts.append(
            f"<h2 id={name}>POST /api/{name}</h2><p>{escape(question.about)}</p><table>{rows}</table>"
        )
    example = json.dumps({"theory": NIXON, "query": "p", "given": "n"})
    curl = f"curl -H 'Content-Type: application/json' -d '{example}' http://127.0.0.1:8080/api/ask"
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>lbm: the JSON interface</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: auto; padding: 1rem }}
:root {{ color-scheme: light dark }}
td {{ vertical-align: top; padding: .2rem .6rem .2rem 0 }} pre {{ overflow-x: auto }}
</style>
<h1>The JSON interface</h1>
<p>Every question takes an object of JSON and answers with one: 200, also where the answer is no; 400 for bad
input; 504 where there is no answer within the budget. <a href="/openapi.json">openapi.json</a> describes it
for programs, <a href="/api/health">health</a> says how the server is. * marks what must be there.</p>
<pre>{escape(curl)}</pre>
{"".join(parts)}</html>
"""


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(schema["enum"])
    return str(schema["type"])
