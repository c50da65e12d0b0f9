"""``lbm studio``: the page in the browser."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from lbm.errors import LimitExceeded
from lbm.views.commands import mcp, shared


def open_studio(
    file: Annotated[
        str | None, Argument(metavar="FILE", help="A theory, .lbm; by default the Nixon diamond.")
    ] = None,
    *,
    host: Annotated[
        str, Option("--host", metavar="HOST", help="Where to listen; by default only this machine can ask.")
    ] = "127.0.0.1",
    port: Annotated[
        int, Option("--port", min=0, max=65535, help="The port; where it is busy, the next one.")
    ] = 8080,
    name: Annotated[
        list[str] | None,
        Option("--name", metavar="HOST", help="Another name that browsers call this machine by."),
    ] = None,
    no_browser: Annotated[bool, Option("--no-browser", help="Print the address and open nothing.")] = False,
    model: mcp.Models = None,
    workers: mcp.Workers = 1,
    seconds: mcp.Most = 60.0,
) -> None:
    """Serve a page on this machine: see a theory and its network, ask, and copy what was asked; until Ctrl-C.

    Beside it are the paths of a JSON interface, which /api describes. Told to listen elsewhere than at
    127.0.0.1, it asks for a token, which the address that is printed has. Each question has a process for
    itself, which may take LBM_MEMORY bytes.
    """
    from lbm.views.studio.questions import MAX_THEORY
    from lbm.views.studio.served import LOOPBACK, run

    theory = _text(file)
    if len(theory) > MAX_THEORY:
        raise LimitExceeded(
            f"{file}: expected at most {MAX_THEORY:,} characters (limit MAX_THEORY), got {len(theory):,}: "
            "ask the command line",
            MAX_THEORY=MAX_THEORY,
        )
    if not host:
        raise typer.BadParameter("expected a host to listen at, as in 127.0.0.1")

    def tell(address: str) -> None:
        shared.say_now(f"lbm studio: {address} (Ctrl-C ends it)")
        if not no_browser:
            import threading
            import webbrowser

            threading.Timer(1.0, webbrowser.open, [address]).start()

    from secrets import token_urlsafe

    run(
        theory,
        host=host,
        port=port,
        others=tuple(name or ()),
        token=None if host in LOOPBACK else token_urlsafe(24),
        models=mcp.named_models(model or ()),
        workers=workers,
        most=seconds,
        tell=tell,
    )


def _text(file: str | None) -> str:
    """Return the text of a theory, as it stands if it is one of ours, else as ours would be written."""
    from lbm.views.studio.gallery import GALLERY

    if file is None:
        return next(iter(GALLERY.values()))
    data, _, format = shared.read_file(file)
    theory = shared.read_theory(file, lenient=False) if file != "-" and format != "lbm" else None
    return str(theory) if theory is not None else data.decode("utf-8-sig")
