"""Copied texts give the same answer as the page; the gallery can be read; ports are as they are told."""

import contextlib
import io
import json
import shlex
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import FileError
from lbm.views.entry import main
from lbm.views.studio.copied import MAX_LINK, Clicked, clicked_of
from lbm.views.studio.gallery import GALLERY
from lbm.views.studio.guard import hosts_of
from lbm.views.studio.page import marks, picture
from lbm.views.studio.questions import QUESTIONS, answer
from lbm.views.studio.served import PORTS, listening

NIXON = GALLERY["Nixon diamond"]
CLICKED = {
    "a query": Clicked(NIXON, "p", {"n": True}),
    "another temperature": Clicked(NIXON, "p | ~r", {"n": True, "q": False}, 2.5),
    "no query": Clicked(NIXON, "", {"n": False}),
    "odd names": Clicked("'it''s $(id)' | b\nEND\n1: 'a\"\\\\' -> b", "b & 'it''s $(id)'", {"b": True}),
}
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def printed(work, monkeypatch, typed=""):
    out = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
    with contextlib.redirect_stdout(out):
        work()
    return out.getvalue()


@pytest.mark.parametrize("clicked", CLICKED.values(), ids=CLICKED)
def test_python_command_and_call_give_the_same_answer(clicked, monkeypatch):
    python = printed(lambda: exec(clicked.python(), {}), monkeypatch)

    first, _, rest = clicked.command().partition("\n")
    line, _, end = first.rpartition(" <<")
    typed, marker, nothing = rest.rpartition(f"{shlex.split(end)[0]}\n")
    assert marker
    assert not nothing
    assert shlex.split(end)[0] not in typed.split("\n")
    command = printed(lambda: main(shlex.split(line)[1:]), monkeypatch, typed)
    assert command == python

    _, _, _, _, data, address = shlex.split(clicked.curl("http://127.0.0.1:8080"))
    name = address.rpartition("/")[2]
    facts = answer(name, QUESTIONS[name].read(json.loads(data)))
    theory = lbm.Theory.parse(clicked.theory)
    options = {"given": clicked.given, "temperature": clicked.temperature}
    if clicked.query:
        assert facts == lbm.ask(theory, clicked.query, **options).facts()
    else:
        assert facts == lbm.marginals(theory, **options).facts()


@given(words, words, st.dictionaries(words.filter(bool), st.booleans(), max_size=4), st.floats(0.1, 10))
def test_a_link_says_what_was_clicked(theory, query, evidence, temperature):
    clicked = Clicked(theory, query, evidence, temperature)
    link = clicked.link("http://127.0.0.1:8080")
    assert link is not None
    assert clicked_of(link.partition("?")[2]) == clicked


@given(st.text(max_size=200))
def test_whatever_a_link_says_is_something_that_can_be_shown(query):
    found = clicked_of(query)
    assert 0 < found.temperature < 1e6


def test_a_link_has_a_length_at_most():
    assert Clicked("a" * MAX_LINK).link() is None
    assert clicked_of("theory=" + "a" * MAX_LINK) == Clicked()
    assert "token" not in (Clicked("a").link("http://127.0.0.1:1") or "")


@pytest.mark.parametrize("name", sorted(GALLERY))
def test_every_theory_of_the_gallery_has_a_world_a_network_and_marginals(name):
    said = {"theory": GALLERY[name]}
    assert answer("check", QUESTIONS["check"].read(said))["satisfiable"]
    machine = answer("compile", QUESTIONS["compile"].read(said))
    best = answer("best", QUESTIONS["best"].read(said))
    [series] = picture(machine, best["worlds"][0])["series"]
    assert len(series["data"]) == len(machine["atoms"]) + len(machine["units"])
    assert {each["target"] for each in series["links"]} <= {node["id"] for node in series["data"]}
    assert set(answer("marginals", QUESTIONS["marginals"].read(said))["marginals"]) == set(machine["atoms"])


def test_the_sudoku_of_the_gallery_has_one_solution():
    assert lbm.count(lbm.Theory.parse(GALLERY["Sudoku"])) == 1


@given(
    st.text(max_size=30),
    st.lists(st.none() | st.integers(-2, 9), max_size=4),
    st.integers(-2, 9),
    st.integers(-2, 40),
)
def test_what_is_underlined_lies_in_the_text(text, lines, wrong, column):
    for mark in marks(text, lines, wrong, column):
        assert 0 <= mark["from"] < mark["to"] <= len(text)


def test_a_busy_port_is_passed_over_and_too_many_are_said():
    with listening("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert first.proto == socket.IPPROTO_TCP  # else answers wait for one another's acknowledgement
        with listening("127.0.0.1", port) as second:
            assert port < second.getsockname()[1] < port + PORTS
    with pytest.raises(FileError, match=r"cannot listen at 203\.0\.113\.1, port 8080"):
        listening("203.0.113.1", 8080)


def test_a_server_answers_to_its_own_names_only():
    assert "127.0.0.1:8080" in hosts_of("127.0.0.1", 8080)
    assert "example.org:8080" in hosts_of("0.0.0.0", 8080, ["example.org"])
    assert "0.0.0.0:8080" not in hosts_of("0.0.0.0", 8080)
    assert "[2001:db8::1]:8080" in hosts_of("2001:DB8::1", 8080)


def test_the_page_needs_an_extra_and_says_so(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    assert main(["studio", "--port", "0", "--no-browser"]) == 2
    assert "pip install 'logical-boltzmann[studio]'" in capsys.readouterr().err


def test_a_theory_too_large_for_the_page_is_refused_by_name(tmp_path, capsys):
    file = tmp_path / "large.lbm"
    file.write_text("a\n" * (1 << 20))
    assert main(["studio", str(file), "--no-browser"]) == 2
    assert "MAX_THEORY" in capsys.readouterr().err
