"""The guard around all that is served: who may ask at all, from which page, and how much may come in.

It is an ASGI application around another one, sockets included. Frameworks check less: NiceGUI's socket takes
any origin, and its limit of an upload is looked at in the browser.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import parse_qs, unquote_to_bytes

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY: Final = 8 << 20
"""Bytes of a request's body, counted as they come."""

MAX_HEADERS: Final = 32 << 10
"""Bytes of a request's headers, the path and what follows it included."""

MAX_SOCKET: Final = 4 << 20
"""Bytes of a message on a socket."""

COOKIE: Final = "lbm-studio"

LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names that a browser on this machine calls it by."""

HEADERS: Final = {
    # Scripts and styles of the page are written into it; nothing comes from outside, or goes there.
    "content-security-policy": "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""What every answer says to the browser."""

_ENTER: Final = """<!doctype html><meta charset="utf-8"><title>lbm studio</title>
<script>const to = new URL(location); to.searchParams.delete("token"); location.replace(to)</script>
<noscript><a href="/">lbm studio</a></noscript>
"""  # a page, since a cookie that is strict would not be sent along with a redirect from elsewhere

_TRICK: Final = re.compile(rb"(?:^|[/\\])\.\.?(?:[/\\]|$)|[\x00-\x1f\x7f\\]|%")


def hosts_of(host: str, port: int, others: Iterable[str] = ()) -> frozenset[str]:
    """Return what requests may call a server that listens there.

    >>> sorted(hosts_of("127.0.0.1", 8080))
    ['127.0.0.1:8080', '[::1]:8080', 'localhost:8080']
    """
    names = {*LOCAL, *others}
    if host not in ("0.0.0.0", "::", "::1"):
        names.add(host)
    whole = (f"[{name}]" if ":" in name and not name.startswith("[") else name for name in names)
    return frozenset(f"{name}:{port}".lower() for name in whole)


class Doorkeeper:
    """An application that lets through what comes from its own page, or from none, and knows the token.

    Parameters
    ----------
    hosts
        What requests may call us, with the port: others are refused, so that no name of somebody else's that
        is made to point here (DNS rebinding) reads our answers.
    token
        What the first address must have behind ``?token=``; None: nothing, as on this machine alone. It is
        exchanged for a cookie at once; programs send ``Authorization: Bearer``.
    """

    def __init__(
        self,
        app: Application,
        hosts: Iterable[str],
        *,
        token: str | None = None,
        most: int = MAX_BODY,
    ) -> None:
        self.app, self.hosts, self.token, self.most = app, frozenset(hosts), token, most
        self.session = token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or a socket, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        status, why = self._look(scope)
        if scope["type"] == "websocket":
            if status:
                await receive()  # the handshake; a close before it is accepted is an answer of 403
                await send({"type": "websocket.close", "code": 1008, "reason": why})
            else:
                await self.app(scope, _bounded_socket(receive), send)
        elif status == 200:
            cookie = f"{COOKIE}={self.session}; Path=/; HttpOnly; SameSite=Strict"
            await _say(send, 200, _ENTER, {"content-type": "text/html; charset=utf-8", "set-cookie": cookie})
        elif status:
            await _say(send, status, f"{why}\n")
        else:
            await self._bounded(scope, receive, send)

    def _look(self, scope: Scope) -> tuple[int, str]:
        """Return the status and the reason of a refusal; 0: let it through; 200: exchange the token."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        query, raw = scope.get("query_string", b""), scope.get("raw_path") or scope["path"].encode()
        if (
            sum(len(name) + len(value) for name, value in scope["headers"]) + len(query) + len(raw)
            > MAX_HEADERS
        ):
            return 431, "expected shorter headers (limit MAX_HEADERS)"
        host = _one(headers, b"host").lower()
        if host not in self.hosts:
            return 403, "expected another host: use the address that was printed"
        origins, secure = headers.get(b"origin", []), scope.get("scheme") in ("https", "wss")
        own = f"{'https' if secure else 'http'}://{host}"
        if any(origin.decode("latin-1").lower() != own for origin in origins):
            return 403, "asked from another page"
        socket = scope["type"] == "websocket"
        if socket and len(origins) != 1:
            return 403, "a socket must say from which page it is opened"
        if _one(headers, b"sec-fetch-site") in ("cross-site", "same-site"):
            opened = (
                _one(headers, b"sec-fetch-mode") == "navigate"
                and _one(headers, b"sec-fetch-dest") == "document"
            )
            if not opened or scope.get("method") != "GET":
                return 403, "asked from another page"
        if _TRICK.search(unquote_to_bytes(raw)) or not raw.startswith(b"/"):
            return 400, "expected a plain path"
        if self.token is None:
            return 0, ""
        return self._known(scope, headers, query)

    def _known(self, scope: Scope, headers: dict[bytes, list[bytes]], query: bytes) -> tuple[int, str]:
        assert self.token is not None
        scheme, _, given = _one(headers, b"authorization").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), self.token):
            return 0, ""
        cookies: SimpleCookie = SimpleCookie()
        for line in headers.get(b"cookie", []):
            try:
                cookies.load(line.decode("latin-1"))
            except CookieError:
                return 403, "a cookie that cannot be read"
        if COOKIE in cookies and _same(cookies[COOKIE].value, self.session):
            given = "".join(parse_qs(query.decode("latin-1")).get("token", []))
            return (200, "") if given and scope.get("method") == "GET" else (0, "")
        tokens = parse_qs(query.decode("latin-1")).get("token", [])
        if scope.get("method") == "GET" and len(tokens) == 1 and _same(tokens[0], self.token):
            return 200, ""
        return 403, "expected the token: open the address that was printed"

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, no longer than it may be, and every answer with HEADERS."""
        length = _one({name.lower(): [value] for name, value in scope["headers"]}, b"content-length")
        if length and (not length.isascii() or not length.isdigit() or int(length[:20]) > self.most):
            await _say(send, 413, f"expected at most {self.most:,} bytes (limit MAX_BODY)\n")
            return
        came, began, over = 0, False, False

        async def counted() -> MutableMapping[str, Any]:
            nonlocal came, over
            message = await receive()
            came += len(message.get("body", b""))
            if over or came > self.most:
                over = True
                return {"type": "http.disconnect"}
            return message

        async def headed(message: MutableMapping[str, Any]) -> None:
            nonlocal began
            if over and not began:
                return
            if message["type"] == "http.response.start":
                began = True
                message = {**message, "headers": _with_ours(message.get("headers", []))}
            await send(message)

        try:
            await self.app(scope, counted, headed)
        except Exception:
            if not over:
                raise
        if over and not began:
            await _say(send, 413, f"expected at most {self.most:,} bytes (limit MAX_BODY)\n")


def _bounded_socket(receive: Receive) -> Receive:
    """Return what receives messages of a socket, and its end in place of one that is too long."""

    async def bounded() -> MutableMapping[str, Any]:
        message = await receive()
        text, data = message.get("text") or "", message.get("bytes") or b""
        if len(text) + len(data) > MAX_SOCKET:
            return {"type": "websocket.disconnect", "code": 1009, "reason": "a message too long"}
        return message

    return bounded


def _with_ours(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    ours = {name.encode(): value.encode() for name, value in HEADERS.items()}
    return [*((name, value) for name, value in headers if name.lower() not in ours), *ours.items()]


def _one(headers: dict[bytes, list[bytes]], name: bytes) -> str:
    """Return a header that is there once; of none, or of several, nothing."""
    found = headers.get(name, [])
    return found[0].decode("latin-1") if len(found) == 1 else ""


def _same(given: str, wanted: str) -> bool:
    """Return whether two secrets are the same, in a time that says nothing about them."""
    return compare_digest(given.encode("utf-8", "replace"), wanted.encode())


async def _say(send: Send, status: int, text: str, headers: dict[str, str] | None = None) -> None:
    body = text.encode()
    said = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store", **(headers or {})}
    said["content-length"] = str(len(body))
    pairs = [(name.encode(), value.encode()) for name, value in said.items()]
    await send({"type": "http.response.start", "status": status, "headers": _with_ours(pairs)})
    await send({"type": "http.response.body", "body": body})
