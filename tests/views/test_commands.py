"""Each command answers its question, for people and for programs, and bad input leaves nothing behind."""

import io
import json
import os
import random
import sys
from decimal import Decimal

import pytest
from hypothesis import given

from lbm.errors import MissingExtra
from lbm.knowledge.numbers import plain
from lbm.knowledge.theory import Theory
from lbm.knowledge.wire import load_theory
from lbm.machine.store import load, save
from lbm.machine.translate import translate
from lbm.reasoning.answers import Proof
from lbm.views.commands import shared
from lbm.views.entry import main
from tests.strategies import weights

NIXON = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p\n"
XOR = "((x & ~y) | (~x & y)) <-> z\n"
CLASH = "# people\na\na -> b\n\nc | d\n(~\n b)\n7: ~c\n"


@pytest.fixture
def write(tmp_path):
    """Write a file and return its name."""

    def make(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return make


@pytest.fixture
def lbm(capsys, monkeypatch):
    """Run a command in this process; return its status, its output and its lines on standard error."""

    def call(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err.splitlines()

    return call


# --- compile -------------------------------------------------------------------------------------


def test_compile_prints_atoms_formulae_units_and_the_energy_function(lbm, write):
    assert lbm("compile", write("nixon.lbm", NIXON)) == (
        0,
        """4 atoms: n, r, q, p
4 formulae (0 hard, 4 soft)
  1  1000: n -> r
  2  1000: n -> q
  3  10: r -> ~p
  4  10: q -> p
7 hidden units, ε = 0.5
  unit  weight  formulae  cube
  h1      1000  1         n & r
  h2      2000  1, 2      ~n
  h3      1000  2         n & q
  h4        10  3         r & ~p
  h5        10  3         ~r
  h6        10  4         q & p
  h7        10  4         ~q
energy function of 11 weights
  E = -h1(1000n + 1000r - 1500) - h2(-2000n + 1000) - h3(1000n + 1000q - 1500) - h4(10r - 10p - 5)"""
        " - h5(-10r + 5) - h6(10q + 10p - 15) - h7(-10q + 5)\n",
        [],
    )


def test_compile_says_what_hard_formulae_weigh_and_what_negative_weights_leave(lbm, write):
    _, out, _ = lbm("compile", write("a.lbm", "a\n-3: a & b\n"), "--epsilon", "0.25")
    assert "a hard formula weighs 4\n" in out
    assert "offset -3\n" in out
    assert "ε = 0.25\n" in out


def test_compile_writes_latex(lbm, write):
    _, out, _ = lbm("compile", write("a.lbm", "x1 -> x2"), "--latex")
    assert out.endswith("E = -h_{1}(x_{1} + x_{2} - 1.5) - h_{2}(-x_{1} + 0.5)\n")


def test_compile_names_definitional_atoms_and_the_units_that_define_them(lbm, write):
    text = "a ^ b ^ c ^ d ^ e ^ f"
    _, out, _ = lbm("compile", write("a.lbm", text), "--method", "definitions")
    machine = translate(Theory([text]), method="definitions")
    assert f"{len(machine.definitions)} definitional atoms: {', '.join(machine.definitions)}\n" in out
    assert all(f"def {name}" in out for name in machine.definitions)


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (["--no-merge"], {"merge": False}),
        (["--method", "full"], {"method": "full"}),
        (["--budget", "1"], {"budget": 1}),
        (["--encoding", "penalty"], {"encoding": "penalty"}),
        (["--epsilon", "0.125"], {"epsilon": 0.125}),
    ],
)
def test_options_of_compile_are_options_of_translate(lbm, write, options, keywords):
    text = NIXON + XOR + "a & b | c & d"
    status, out, _ = lbm("compile", write("a.lbm", text), *options, "--all")
    machine = translate(Theory.parse(text), **keywords)
    assert status == 0
    assert machine.equation() in out
    assert machine.equation() != translate(Theory.parse(text)).equation()


def many(count):
    return "".join(f"{i + 1}: a{i} | b{i}\n" for i in range(count))


def test_compile_summarises_a_large_machine_and_says_how_to_see_all(lbm, write):
    name = write("many.lbm", many(100))
    _, out, _ = lbm("compile", name)
    assert "200 atoms: a0, b0" in out
    assert ", and 180 more\n" in out
    assert "  and 80 more\n" in out
    assert "  and 180 more: --all prints them, -o saves the machine\n" in out
    assert out.endswith("energy function of 300 weights\n  --all prints it\n")
    assert len(out.splitlines()) < 60
    _, out, _ = lbm("compile", name, "--all")
    assert "\n  h200 " in out
    assert "more" not in out
    assert "E = -h1(" in out


def test_sixty_units_are_not_too_many_to_print(lbm, write):
    _, out, _ = lbm("compile", write("many.lbm", many(30)))
    assert "60 hidden units" in out
    assert "more" not in out


def test_an_energy_function_too_long_to_write_says_so(lbm, write, monkeypatch):
    monkeypatch.setattr("lbm.machine.equation.MAX_TERMS", 5)
    name = write("nixon.lbm", NIXON)
    assert "(limit MAX_TERMS)" in lbm("compile", name)[1]
    assert json.loads(lbm("compile", name, "--json")[1])["energy"] is None


def test_a_long_formula_is_cut_and_a_unit_of_many_formulae_counts_them(lbm, write):
    long = " | ".join(f"a{i}" for i in range(50))
    _, out, _ = lbm("compile", write("a.lbm", f"{long}\n" + "1: x\n" * 9))
    assert "  1  a0 | a1 |" in out
    assert " ...\n" in out
    assert "  h51        9  2, 3, 4, 6 more  x\n" in out


def test_compile_saves_the_machine_it_prints(lbm, write, tmp_path):
    output = tmp_path / "nixon.lbmm"
    status, out, _ = lbm("compile", write("nixon.lbm", NIXON), "-o", output)
    assert status == 0
    assert out.endswith(f"written to {output}\n")
    assert load(output).equation() in out


@pytest.mark.parametrize("form", ["qubo", "ising"])
def test_compile_writes_coefficients_by_the_ending_of_the_name(lbm, write, tmp_path, form):
    output = tmp_path / f"nixon.{form.upper()}"
    assert lbm("compile", write("nixon.lbm", NIXON), "-o", output)[0] == 0
    assert json.loads(output.read_text())["variable_type"] == {"qubo": "BINARY", "ising": "SPIN"}[form]


def test_compile_as_json_is_the_whole_machine(lbm, write, tmp_path):
    output = tmp_path / "m"
    text = NIXON + "n\n-2.5: ~n\n"
    _, out, _ = lbm("compile", write("nixon.lbm", text), "--json", "-o", output)
    found = json.loads(out)
    machine = translate(Theory.parse(text))
    assert found["atoms"] == ["n", "r", "q", "p"]
    assert found["definitions"] == []
    assert found["hard_weight"] == machine.hard_weight
    assert found["offset"] == -2.5
    assert found["formulae"][4] == {"text": "n", "weight": None, "line": 5}
    assert found["formulae"][5] == {"text": "~n", "weight": -2.5, "line": 6}
    assert found["energy"] == machine.equation()
    assert found["visible_bias"] == [0, 0, 0, 0]
    assert found["output"] == str(output)
    assert len(found["units"]) == machine.hidden
    for shown, unit in zip(found["units"], machine.units, strict=True):
        assert shown["cube"] == str(unit.cube)
        assert [tuple(literal) for literal in shown["literals"]] == list(unit.cube.literals)
        assert (shown["weight"], shown["bias"]) == (unit.weight, unit.bias)
        assert tuple(shown["formulae"]) == unit.formulae


def test_json_is_never_cut(lbm, write):
    found = json.loads(lbm("compile", write("many.lbm", many(100)), "--json")[1])
    assert len(found["units"]) == 200
    assert len(found["formulae"]) == 100


@given(weights)
def test_a_weight_in_json_is_exact(weight):
    shown = json.loads(json.dumps(plain(weight)))
    assert Decimal(shown if isinstance(shown, str) else repr(shown)) == weight


def test_a_packed_theory_is_compiled_too(lbm, write):
    _, out, _ = lbm("compile", write("a.wcnf", "h 1 2 0\n5 -1 0\n"))
    assert "2 formulae (1 hard, 1 soft)" in out
    assert "1  x1 | x2\n" in out
    assert "2  5: ~x1\n" in out


# --- check ---------------------------------------------------------------------------------------


def test_check_tells_the_size_and_that_it_is_satisfiable(lbm, write):
    name = write("a.lbm", "a -> b\n2: a & b | c\n")
    assert lbm("check", name) == (
        0,
        f"{name}: 3 atoms, 2 formulae (1 hard, 1 soft)\n"
        "  1 clause with 2 literals; 6 distinct parts, 2 deep; at most 4 cubes\n"
        "satisfiable\n",
        [],
    )


def test_check_says_when_nothing_is_hard(lbm, write):
    assert lbm("check", write("nixon.lbm", NIXON))[1].endswith("satisfiable: nothing is hard\n")


def test_check_names_the_clash_by_line_and_text(lbm, write):
    status, out, _ = lbm("check", write("people.lbm", CLASH))
    assert status == 1
    assert out.splitlines()[2:] == [
        "unsatisfiable: these 3 hard formulae clash; without any one the others can be kept",
        "  line 2: a",
        "  line 3: a -> b",
        "  line 6: ~b",
    ]


def test_check_names_a_formula_that_is_false_by_itself(lbm, write):
    status, out, _ = lbm("check", write("a.lbm", "b\na & ~a\n"))
    assert status == 1
    assert out.endswith("unsatisfiable: this hard formula is false in every world\n  line 2: a & ~a\n")


def test_check_counts_clauses_where_lines_are_unknown(lbm, write):
    status, out, _ = lbm("check", write("a.cnf", "p cnf 2 3\n1 2 0\n-1 0 -2 0\n"))
    assert status == 1
    assert out.endswith("  clause 1: x1 | x2\n  clause 2: ~x1\n  clause 3: ~x2\n")


def test_check_lists_the_first_of_a_long_clash(lbm, write):
    chain = ["x0", *(f"x{i} -> x{i + 1}" for i in range(100)), "~x100"]
    status, out, _ = lbm("check", write("chain.lbm", "\n".join(chain)))
    assert status == 1
    assert "these 102 hard formulae clash" in out
    assert out.endswith("  and 82 more: --json lists them\n")


def test_check_as_json(lbm, write):
    name = write("people.lbm", CLASH)
    status, out, _ = lbm("check", name, "--json")
    assert status == 1
    assert json.loads(out) == {
        "file": name,
        "atoms": 4,
        "hard": 4,
        "soft": 1,
        "clauses": 5,
        "literals": 7,
        "parts": 8,
        "depth": 1,
        "cubes": 7,
        "satisfiable": False,
        "clash": [
            {"formula": 0, "line": 2, "text": "a"},
            {"formula": 1, "line": 3, "text": "a -> b"},
            {"formula": 3, "line": 6, "text": "~b"},
        ],
        "minimal": True,
    }


def test_check_as_json_of_a_satisfiable_theory_has_no_clash(lbm, write):
    found = json.loads(lbm("check", write("a.cnf", "p cnf 1 1\n1 0\n"), "--json")[1])
    assert found["satisfiable"] is True
    assert found["clash"] == []
    assert found["minimal"] is None
    assert found["parts"] is None


def test_check_without_an_answer_exits_with_3(lbm, write):
    holes, lines = range(12), []
    lines += [" | ".join(f"sits(p{p}, h{h})" for h in holes) for p in range(13)]
    lines += [f"~sits(p{p}, h{h}) | ~sits(p{q}, h{h})" for h in holes for p in range(13) for q in range(p)]
    status, out, _ = lbm("check", write("pigeons.lbm", "\n".join(lines)), "--seconds", "0.3")
    assert status == 3
    assert out.endswith("no answer within 0.3 seconds: --seconds allows more\n")


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ((), "unsatisfiable; no clash was found within 60 seconds"),
        ((0, 1), "fewer may do, but not within 60 seconds"),
    ],
)
def test_check_says_what_it_did_not_have_the_time_for(lbm, write, monkeypatch, why, words):
    def unfinished(theory, budget):
        return Proof("unsatisfiable", why, theory=theory)

    monkeypatch.setattr("lbm.reasoning.search.satisfy.prove", unfinished)
    status, out, _ = lbm("check", write("a.lbm", "a\n~a"))
    assert status == 1
    assert words in out


def test_a_theory_of_many_parts_is_measured_without_estimating_cubes(lbm, write, monkeypatch):
    monkeypatch.setattr("lbm.views.commands.check.ESTIMATED", 3)
    assert "cubes" not in lbm("check", write("a.lbm", NIXON))[1]


# --- convert -------------------------------------------------------------------------------------


def test_convert_keeps_the_theory_through_every_format_of_clauses(lbm, write, tmp_path):
    name = write("a.lbm", "p | ~q\nq\n5: ~p\n")
    for i, ending in enumerate(["wcnf", "lbm", "wcnf", "lbm"]):
        output = tmp_path / f"{i}.{ending}"
        old = ["--to", "wcnf-old"] if i == 2 else []
        assert lbm("convert", name, "-o", output, *old) == (0, "", [])
        assert load_theory(output) == Theory.parse("p | ~q\nq\n5: ~p")
        name = str(output)
    assert (tmp_path / "2.wcnf").read_text().count("p wcnf") == 1


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_convert_writes_to_standard_output(lbm, write, output):
    status, out, _ = lbm("convert", write("a.lbm", "a -> b"), "--to", "cnf", *output)
    assert status == 0
    assert out.endswith("p cnf 2 1\n-1 2 0\n")


def test_convert_as_json_tells_what_it_wrote(lbm, write, tmp_path):
    name, output = write("a.lbm", "a -> b"), str(tmp_path / "a.cnf")
    _, out, _ = lbm("convert", name, "-o", output, "--json")
    assert json.loads(out) == {"input": name, "output": output, "format": "cnf", "atoms": 2, "formulae": 1}
    _, out, _ = lbm("convert", "-", "-o", output, "--to", "wcnf-old", "--json", stdin=b"a")
    assert json.loads(out)["format"] == "wcnf-old"
    assert json.loads(out)["input"] == "<stdin>"


def test_convert_in_place_is_allowed(lbm, write):
    name = write("a.lbm", "(a)   &  (b)\n")
    assert lbm("convert", name, "-o", name)[0] == 0
    assert load_theory(name) == Theory(["a & b"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["--to", "-o"]),
        (["--to", "lbm", "--json"], ["--json", "-o"]),
        (["-o", "{tmp}/a.pdf"], ["a.pdf", ".wcnf"]),
        (["-o", "{tmp}/a.cnf"], ["weight", ".wcnf"]),
    ],
)
def test_convert_refuses_what_it_cannot_write(lbm, write, tmp_path, options, words):
    name = write("a.lbm", "2: a")
    status, out, err = lbm("convert", name, *(option.format(tmp=tmp_path) for option in options))
    assert (status, out, len(err)) == (2, "", 1)
    assert all(word in err[0] for word in words)
    assert [path.name for path in tmp_path.iterdir()] == ["a.lbm"]


# --- draw ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_draw_writes_a_picture(lbm, write, tmp_path, kind):
    output = tmp_path / f"a.{kind}"
    assert lbm("draw", write("a.lbm", NIXON), "-o", output) == (0, "", [])
    assert output.stat().st_size > 1000


def test_a_saved_machine_is_drawn_as_its_theory_is(lbm, write, tmp_path):
    for name in ("machine.lbmm", "machine"):
        save(translate(Theory.parse(NIXON)), tmp_path / name)
        assert lbm("draw", tmp_path / name, "-o", tmp_path / f"{name}.svg") == (0, "", [])
    lbm("draw", write("nixon.lbm", NIXON), "-o", tmp_path / "theory.svg")
    drawn = (tmp_path / "theory.svg").read_bytes()
    assert (tmp_path / "machine.svg").read_bytes() == (tmp_path / "machine.lbmm.svg").read_bytes() == drawn


def test_draw_as_json_counts_units(lbm, tmp_path):
    output = str(tmp_path / "a.svg")
    _, out, _ = lbm("draw", "-", "-o", output, "--json", stdin=NIXON.encode())
    assert json.loads(out) == {
        "output": output,
        "visible": 4,
        "hidden": 7,
        "definitional": 0,
        "summary": False,
    }
    _, out, _ = lbm("draw", "-", "-o", output, "--json", stdin=many(100).encode())
    assert json.loads(out)["summary"] is True


def test_draw_warns_of_signs_the_font_lacks(lbm, write, tmp_path):
    status, _, err = lbm("draw", write("a.lbm", "变量"), "-o", tmp_path / "a.png")
    assert status == 0
    assert len(err) == 1
    assert err[0].startswith("lbm: warning: ")


def test_a_damaged_machine_is_called_so(lbm, write, tmp_path):
    save(translate(Theory.parse(NIXON)), tmp_path / "m.lbmm")
    whole = (tmp_path / "m.lbmm").read_bytes()
    for size in (0, 5, 100, len(whole) - 1):
        status, out, err = lbm("draw", write("cut.lbmm", whole[:size]), "-o", tmp_path / "a.svg")
        assert (status, out, len(err)) == (2, "", 1)
        assert "cut.lbmm" in err[0]
    assert not (tmp_path / "a.svg").exists()


def test_a_missing_matplotlib_is_named_with_the_command_that_installs_it(lbm, write, tmp_path, monkeypatch):
    for name in [
        name for name in sys.modules if name.split(".")[0] == "matplotlib" or name == "lbm.views.plots"
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("lbm.views.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = lbm("draw", write("a.lbm", "a"), "-o", tmp_path / "a.svg")
    assert (status, out) == (2, "")
    assert err == [f"lbm: {MissingExtra('plots', 'lbm draw', 'matplotlib')}"]
    assert "pip install 'logical-boltzmann[plots]'" in err[0]
    assert not (tmp_path / "a.svg").exists()


# --- what all of them read -----------------------------------------------------------------------

COMMANDS = {
    "compile": ["compile", "{file}", "-o", "{out}"],
    "check": ["check", "{file}"],
    "convert": ["convert", "{file}", "-o", "{out}", "--to", "lbm"],
    "draw": ["draw", "{file}", "-o", "{out}.svg"],
}
BAD = {
    "empty": (b"", "empty"),
    "blank": (b"\n  \n", "empty"),
    "comments only": (b"# nothing\n", "at least one formula"),
    "binary": (random.Random(0).randbytes(1000), "UTF-8"),
    "a NUL": (b"a & \0b", "a.lbm:1:5: "),
    "an unknown character": (b"a\nb & $\n", "a.lbm:2:5: "),
    "an open parenthesis": (b"(a & b\n", "a.lbm:"),
    "a closing parenthesis": (b"a & b)\n", "a.lbm:1:6: "),
    "a weight of zero": (b"a\n0: b\n", "a.lbm:2:"),
    "a weight that is no number": (b"nan: b\n", "a.lbm:1:"),
    "an infinite weight": (b"1e999: b\n", "a.lbm:1:"),
    "an unknown domain": (b"forall X in drug: p(X)\n", "a.lbm:1:13: no domain 'drug'"),
    "an empty domain": (b"domain drug = {}\nforall X in drug: p(X)\n", "a.lbm:2:"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_leaves_nothing_behind(lbm, write, tmp_path, command, case):
    content, words = BAD[case]
    name = write("a.lbm", content)
    arguments = [argument.format(file=name, out=tmp_path / "out") for argument in COMMANDS[command]]
    status, out, err = lbm(*arguments)
    assert (status, out, len(err)) == (2, "", 1), err
    assert "a.lbm" in err[0]
    assert words in err[0]
    assert [path.name for path in tmp_path.iterdir()] == ["a.lbm"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["missing.lbm", "", "x" * 5000, "directory", "missing/a.lbm", "a\udcff.lbm"])
def test_a_file_that_cannot_be_read_is_one_line(lbm, tmp_path, command, name):
    (tmp_path / "directory").mkdir()
    file = tmp_path / name if name else ""
    arguments = [argument.format(file=file, out=tmp_path / "out") for argument in COMMANDS[command]]
    status, out, err = lbm(*arguments)
    assert (status, out, len(err)) == (2, "", 1)
    assert err[0].startswith("lbm: cannot read ")
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]


@pytest.mark.parametrize("command", ["compile", "convert", "draw"])
@pytest.mark.parametrize("place", ["missing/out", "directory"])
def test_a_file_that_cannot_be_written_is_one_line(lbm, write, tmp_path, command, place):
    name = write("a.lbm", "a -> b")
    output = tmp_path / place
    if command == "draw":
        output = output.with_suffix(".svg")
    (tmp_path / f"directory{output.suffix}").mkdir()
    extra = ["--to", "lbm"] if command == "convert" else []
    status, out, err = lbm(command, name, "-o", output, *extra)
    assert (status, out, len(err)) == (2, "", 1)
    assert err[0].startswith(f"lbm: cannot write {output}: ")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.lbm", f"directory{output.suffix}"]


def test_the_theory_to_compile_is_not_overwritten_by_its_machine(lbm, write, tmp_path):
    name = write("a.lbm", NIXON)
    status, _, err = lbm("compile", name, "-o", tmp_path / "." / "a.lbm")
    assert (status, len(err)) == (2, 1)
    assert load_theory(name) == Theory.parse(NIXON)


def test_a_machine_is_not_written_to_standard_output(lbm, write):
    status, out, err = lbm("compile", write("a.lbm", "a"), "-o", "-")
    assert (status, out, len(err)) == (2, "", 1)


def test_a_formula_past_every_budget_is_one_line(lbm, write, tmp_path):
    formula = " ^ ".join(f"x{i}" for i in range(40))
    status, out, err = lbm("compile", write("a.lbm", formula), "--method", "diagram", "-o", tmp_path / "out")
    assert (status, out, len(err)) == (2, "", 1)
    assert "budget" in err[0] or "limit" in err[0]
    assert not (tmp_path / "out").exists()


def test_a_very_deep_formula_is_read_by_every_command(lbm, write, tmp_path):
    assert lbm("check", write("wide.lbm", "(" * 200_000 + "a" + ")" * 200_000))[0] == 0
    assert lbm("check", write("deep.lbm", "~" * 200_000 + "a"))[0] == 0
    name = write("deep.lbm", "~" * 20_000 + "a")
    assert lbm("compile", name)[0] == 0
    assert lbm("convert", name, "-o", tmp_path / "deep.cnf")[0] == 0
    assert lbm("draw", name, "-o", tmp_path / "deep.svg")[0] == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dash_is_standard_input_in_any_format(lbm, tmp_path, command):
    for data in (b"a -> b\n", b"p cnf 2 1\n-1 2 0\n", b"h -1 2 0\n"):
        arguments = [argument.format(file="-", out=tmp_path / "out") for argument in COMMANDS[command]]
        status, _, err = lbm(*arguments, stdin=data)
        assert (status, err) == (0, [])


def test_bad_standard_input_is_called_so(lbm):
    status, _, err = lbm("check", "-", stdin=b"a & \n")
    assert (status, len(err)) == (2, 1)
    assert err[0].startswith("lbm: <stdin>:1:")


def test_standard_input_that_is_closed_broken_or_endless_is_one_line(lbm, monkeypatch):
    class Broken:
        @property
        def buffer(self):
            return self

        def read(self, size):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stdin", None)
    assert lbm("check", "-")[2] == ["lbm: cannot read standard input: it is closed"]
    monkeypatch.setattr(sys, "stdin", Broken())
    assert lbm("check", "-")[2] == ["lbm: cannot read standard input: Input/output error"]
    monkeypatch.setattr("lbm.knowledge.packed.MAX_BYTES", 10)
    status, _, err = lbm("check", "-", stdin=b"a" * 100)
    assert (status, len(err)) == (2, 1)
    assert "MAX_BYTES" in err[0]


def test_a_wrong_header_is_an_error_and_with_lenient_a_warning(lbm, write, tmp_path):
    name = write("a.cnf", "p cnf 2 7\n1 2 0\n")
    for command in COMMANDS.values():
        arguments = [argument.format(file=name, out=tmp_path / "out") for argument in command]
        status, out, err = lbm(*arguments)
        assert (status, out, len(err)) == (2, "", 1)
        assert "a.cnf:1:1: " in err[0]
        status, _, err = lbm(*arguments, "--lenient")
        assert (status, len(err)) == (0, 1)
        assert err[0].startswith("lbm: warning: ")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in its file system")
def test_a_pipe_is_read_only_once(lbm, tmp_path):
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a -> b\n",))
    writer.start()
    assert lbm("draw", pipe, "-o", tmp_path / "a.svg") == (0, "", [])
    writer.join()


# --- words ---------------------------------------------------------------------------------------


def test_on_a_terminal_work_is_shown_and_in_a_pipe_not(lbm, write, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert shared.working("thinking").__class__.__name__ == "nullcontext"
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with shared.working("thinking"):
        pass
    assert "thinking" in terminal.getvalue()


def test_an_empty_list_in_json_is_a_list(capsys):
    shared.say_json({"nothing": iter(()), "some": iter([1, "¬"])})
    assert json.loads(capsys.readouterr().out) == {"nothing": [], "some": [1, "¬"]}
