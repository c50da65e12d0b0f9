"""The server of the page and of the JSON interface: one address, one guard, one pool of workers."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from lbm.errors import FileError, MissingExtra
from lbm.views.studio.guard import MAX_SOCKET, Doorkeeper, hosts_of
from lbm.views.studio.questions import MAX_SECONDS
from lbm.views.studio.workers import Workers

PORTS: Final = 20
"""Ports that are tried, one after the other, where the first is busy."""

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
"""Hosts that only this machine reaches."""


def application(
    pool: Workers, theory: str, *, hosts: frozenset[str], token: str | None = None, address: str = ""
) -> Doorkeeper:
    """Return all that is served, behind its guard; the workers begin and end with it."""
    try:
        from fastapi import FastAPI
        from nicegui import ui
    except ImportError:
        raise MissingExtra("studio", "lbm studio", "nicegui") from None
    from lbm.views.studio.interface import routes
    from lbm.views.studio.page import root_of

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pool:
            yield

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.router.routes.extend(routes(pool))
    ui.run_with(
        app, root=root_of(pool, theory, address), title="lbm studio", dark=None, show_welcome_message=False
    )
    return Doorkeeper(app, hosts, token=token)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there or, where that port is busy, at one of the next."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last: OSError | None = None
    for each in range(port, min(port + PORTS, 65536)) if port else (0,):
        # Said to be TCP: else asyncio leaves Nagle's algorithm on, and answers wait 40 ms for their rest.
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, each))
            found.listen(128)
        except OSError as error:
            found.close()
            last = error
        else:
            return found
    why = last.strerror if last is not None and last.strerror else last
    raise FileError(f"cannot listen at {host}, port {port} or the {PORTS - 1} after it: {why}")


def run(
    theory: str,
    *,
    host: str,
    port: int,
    others: tuple[str, ...] = (),
    token: str | None = None,
    models: Mapping[str, str] | None = None,
    workers: int = 1,
    most: float = MAX_SECONDS,
    tell: Callable[[str], Any],
) -> None:
    """Serve until interrupted; ``tell`` is called with the address once it is listened at."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("studio", "lbm studio", "uvicorn") from None
    with listening(host, port) as place:
        port = place.getsockname()[1]
        shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
        address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"
        pool = Workers(workers, models=models, most=most)
        names = (*others, shown) if host not in LOOPBACK else others
        hosts = hosts_of(host, port, names)
        app = application(pool, theory, hosts=hosts, token=token, address=address)
        config = uvicorn.Config(
            app,  # type: ignore[arg-type,unused-ignore]  # its own types are narrower
            log_level="warning",
            access_log=False,
            loop="asyncio",
            proxy_headers=False,  # or anybody could say where a request comes from
            server_header=False,
            ws_max_size=MAX_SOCKET,
            h11_max_incomplete_event_size=64 << 10,
            timeout_graceful_shutdown=2,
        )
        tell(address if token is None else f"{address}/?token={token}")
        uvicorn.Server(config).run(sockets=[place])
