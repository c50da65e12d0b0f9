"""The questions as tools of the Model Context Protocol (MCP), over standard input and output.

A language model can have rules, and what it concludes from them, checked exactly. It sends text and numbers
and gets facts or one line that says what is wrong; no tool reads or writes a file that it names.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import IO, Any, Final

from lbm.errors import MissingExtra, RequestError, suggested
from lbm.views.studio.questions import MAX_SECONDS, QUESTIONS, shown
from lbm.views.studio.workers import Reply, Workers

TOOLS: Final = ("check", "ask", "entails", "best", "models", "count", "explain", "predict")
"""The questions that assistants may ask."""

MAX_MESSAGE: Final = 8 << 20
"""Bytes of one message; a longer one is passed over, and answered as one that cannot be read."""

INSTRUCTIONS: Final = """\
Rules are checked here, exactly. Write each rule as a formula over named atoms, one a line, in `theory`; write
what is known of a case as a formula in `given`, and a claim as a formula in `query`. First `check` that the
rules do not clash. Then `entails` says whether the claim follows: with the rules that prove it, or with a
counterexample, a world in which all rules hold and the claim does not. Rules with exceptions get a weight
('2.5: bird -> flies'): then `ask` says how likely the claim is, and `best` which world breaks least.
Syntax: ~ not, & and, | or, ^ xor, -> implies, <-> iff; exactly(1, a, b, c), atleast(k, ...), atmost(k, ...);
atoms are names such as over_18 or any text in 'single quotes'.
"""


async def serve(
    *, models: Mapping[str, str] | None = None, workers: int = 1, most: float = MAX_SECONDS
) -> None:
    """Answer an assistant over standard input and output until standard input closes."""
    try:
        import anyio
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise MissingExtra("mcp", "lbm mcp", "mcp") from None
    async with Workers(workers, models=models, most=most) as pool:
        server = server_of(pool)
        lines: Any = Lines(sys.stdin.buffer)
        async with stdio_server(stdin=anyio.wrap_file(lines)) as (heard, told):
            await server.run(heard, told, server.create_initialization_options())


def server_of(pool: Workers) -> Any:
    """Return the server whose tools are answered by these workers."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    from lbm import __version__

    only_reads = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    tools = [
        types.Tool(
            name=name,
            description=QUESTIONS[name].about,
            input_schema=QUESTIONS[name].schema(pool.most),
            annotations=only_reads,
        )
        for name in TOOLS
    ]

    async def listed(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def called(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        if asked.name in TOOLS:
            reply = await pool.ask(asked.name, asked.arguments or {})
        else:
            there = suggested(asked.name, TOOLS, f": expected {', '.join(TOOLS)}")
            reply = Reply.of(RequestError(f"no tool {shown(asked.name)}{there}", name="tool"))
        if reply.status in (0, 1):
            text = json.dumps(reply.body, ensure_ascii=False)
            return types.CallToolResult(
                content=[types.TextContent(text=text)], structured_content=reply.body, is_error=False
            )
        return types.CallToolResult(content=[types.TextContent(text=reply.body["error"])], is_error=True)

    return Server(
        "lbm",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


class Lines:
    """Lines of a stream as text, none longer than MAX_MESSAGE: of a longer one its place is left, empty."""

    def __init__(self, stream: IO[bytes], most: int = MAX_MESSAGE) -> None:
        self.stream, self.most = stream, most

    def readline(self) -> str:
        """Return the next line; nothing at the end."""
        line = self.stream.readline(self.most)
        if len(line) < self.most or line.endswith(b"\n"):
            return line.decode("utf-8", "replace")
        while line and not line.endswith(b"\n"):
            line = self.stream.readline(self.most)
        return "\n"

    def close(self) -> None:
        """Leave the stream open: it is the process's own."""


def run(**options: Any) -> None:
    """Serve until standard input closes."""
    asyncio.run(serve(**options))
