"""``lbm mcp``, asked by the official client in a process of its own."""

import asyncio
import io
import os
import sys

import pytest

import lbm
from lbm.views.entry import main
from lbm.views.studio.assistants import TOOLS, Lines

mcp = pytest.importorskip("mcp", reason="needs the extra mcp")

NIXON = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"
# Eleven pigeons in ten holes: nobody proves in a moment that they do not fit.
PIGEONS = "\n".join(
    [" | ".join(f"p{i}_{j}" for j in range(10)) for i in range(11)]
    + [f"~p{i}_{k} | ~p{j}_{k}" for k in range(10) for i in range(11) for j in range(i)]
)
CALLS = {
    "diamond": ("ask", {"theory": NIXON, "query": "p", "given": "n", "why": True}),
    "clash": ("check", {"theory": "a\nc\n~a | b\n~b"}),
    "impossible": ("ask", {"theory": "a\nc\n~a | b\n~b", "query": "c"}),
    "late": ("entails", {"theory": PIGEONS, "query": "p0_0", "seconds": 0.3}),
    "bad": ("ask", {"theory": "a &", "query": "a"}),
    "misspelt": ("ask", {"theory": "a", "qurey": "a"}),
    "unknown": ("asc", {"theory": "a", "query": "a"}),
    "file": ("predict", {"model": "../../etc/passwd", "rows": [{"a": 1}]}),
    "long": ("check", {"theory": "a\n" * (1 << 20)}),
    "after": ("count", {"theory": "a | b | c"}),
}


@pytest.fixture(scope="module")
def said():
    """What one server says to all of the calls, and the tools it lists."""

    async def talk():
        environment = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PYTHON", "LBM_", "OMP_", "NUMBA_"))
        }
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        command = mcp.StdioServerParameters(
            command=sys.executable, args=["-m", "lbm", "mcp", "--seconds", "20"], env=environment
        )
        async with mcp.Client(command) as client:
            heard = {"tools": (await client.list_tools()).tools, "about": client.instructions}
            for name, (tool, arguments) in CALLS.items():
                heard[name] = await client.call_tool(tool, arguments)
            return heard

    return asyncio.run(asyncio.wait_for(talk(), 120))


def test_the_tools_are_listed_with_their_schemas_and_the_server_says_how_to_use_them(said):
    assert [tool.name for tool in said["tools"]] == list(TOOLS)
    for tool in said["tools"]:
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert tool.input_schema["properties"]["seconds"]["maximum"] == 20
        assert tool.annotations.read_only_hint
    assert "theory" in said["about"]


def test_the_nixon_diamond_is_answered_as_python_answers_it(said):
    facts = lbm.ask(lbm.Theory.parse(NIXON), "p", given="n", why=True).facts()
    assert not said["diamond"].is_error
    assert said["diamond"].structured_content == facts
    assert facts["probability"] == 0.5


def test_a_clash_is_named(said):
    assert said["clash"].structured_content["satisfiable"] is False
    assert [each["text"] for each in said["clash"].structured_content["clash"]] == ["a", "~a | b", "~b"]
    assert not said["impossible"].is_error
    assert said["impossible"].structured_content["answer"] is False
    assert [each["line"] for each in said["impossible"].structured_content["clash"]] == [1, 3, 4]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("late", "no answer within 0.3 seconds: allow more"),
        ("bad", "theory:1:4: expected a formula, found the end of the text"),
        ("misspelt", "ask takes no 'qurey'; did you mean 'query'?"),
        ("unknown", "no tool 'asc'; did you mean 'ask'?"),
        ("file", "no model '../../etc/passwd'; the server was given none"),
        ("long", "theory: expected at most 1,048,576 characters (limit MAX_THEORY), got 2,097,152"),
    ],
)
def test_what_cannot_be_answered_is_an_error_of_one_line(said, call, line):
    assert said[call].is_error
    [content] = said[call].content
    assert content.text.startswith(line)
    assert "\n" not in content.text


def test_the_server_goes_on_after_all_that(said):
    assert said["after"].structured_content == {"count": "7"}


def test_a_message_too_long_leaves_an_empty_line_and_those_after_it_are_read():
    lines = Lines(io.BytesIO(b"short\n" + b"x" * 100 + b"\nnext\n" + b"y" * 9 + b"\nlast"), most=10)
    assert [lines.readline() for _ in range(6)] == ["short\n", "\n", "next\n", "yyyyyyyyy\n", "last", ""]


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (["m=no/such/file"], "cannot read no/such/file: there is no such file"),
        (["=x"], "expected NAME=FILE"),
        ([__file__, __file__], "two models are called 'test_studio_assistants'"),
    ],
)
def test_models_are_named_once_and_must_be_there(model, line, capsys):
    assert main(["mcp", *(part for each in model for part in ("--model", each))]) == 2
    assert line in capsys.readouterr().err
