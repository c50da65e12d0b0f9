"""The command line at its edges: long numbers, absurd ones, closed streams, missing packages."""

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.knowledge.numbers import written
from lbm.views.entry import main


@pytest.fixture
def write(tmp_path):
    """Write a file and return its name."""

    def make(name, content):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return str(path)

    return make


@pytest.fixture
def lbm(capsys):
    """Run a command in this process; return its status, its output and its lines on standard error."""

    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return status, out, err.splitlines()

    return call


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )


# --- numbers -------------------------------------------------------------------------------------


def free(number):
    return f"atoms {', '.join(f'x{i}' for i in range(number))}\nx0 | x1\n"


@given(st.integers(0, 60_000), st.integers(-9, 9), st.booleans())
def test_any_whole_number_is_written_in_its_digits(bits, more, negative):
    number = (1 << bits) + more
    digits = written(-number if negative else number)
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert digits == str(-number if negative else number)
    finally:
        sys.set_int_max_str_digits(before)


def test_counts_of_more_than_4300_digits_are_printed(lbm, write):
    file = write("free.lbm", free(20_000))
    whole = written(3 << 19_998)
    assert len(whole) == 6021
    assert lbm("count", file) == (0, whole + "\n", [])
    status, out, _ = lbm("count", file, "--json")
    assert (status, json.loads(out)) == (0, {"count": whole})


def test_worlds_past_counting_are_refused_in_one_short_line(lbm, write):
    status, out, err = lbm("models", write("free.lbm", free(20_000)))
    assert (status, out, len(err)) == (3, "", 1)
    assert "MAX_LISTED" in err[0]
    assert len(err[0]) < 200


ABSURD = [
    ("--confidence", "1e308", "machine", "exact"),
    ("--confidence", "1e308", "machine", "collapsed"),
    ("--confidence", "1e308", "machine", "gibbs"),
    ("--temperature", "1e-308", "machine", "exact"),
    ("--temperature", "5e-324", "machine", "gibbs"),
    ("--temperature", "1e-308", "logical", "collapsed"),
    ("--temperature", "5e-324", "logical", "tempered"),
]


@pytest.mark.parametrize(("option", "value", "distribution", "method"), ABSURD)
def test_numbers_that_no_double_can_hold_are_one_error_of_ours(
    lbm, write, option, value, distribution, method
):
    file = write("t.lbm", "2: a -> b\n3: b | c\n~c | a\n")
    for command in (["ask", file, "a"], ["sample", file, "-n", "2"]):
        status, out, err = lbm(
            *command, option, value, "--distribution", distribution, "--method", method, "--seed", "1"
        )
        assert (status, out, len(err)) == (2, "", 1)
        assert "bug" not in err[0]
        assert "warning" not in err[0]


def test_log_z_past_every_double_is_one_error_of_ours(lbm, write):
    file = write("t.lbm", "2: a -> b\n3: b | c\n~c | a\n")
    for options in (["--temperature", "1e-308"], ["--confidence", "1e308", "--distribution", "machine"]):
        status, out, err = lbm("log-partition", file, *options)
        assert (status, out, len(err)) == (2, "", 1)
        assert err[0].startswith("lbm: expected ")


@pytest.mark.parametrize(
    "text", ["٣: a", "2: b\n٣.5: a & (b | c)", "1٣: a", "1e٣: a", "atleast(٣, a, b, c, d)"]
)
def test_digits_of_other_alphabets_are_refused_where_a_number_is_expected(lbm, write, text):
    status, out, err = lbm("check", write("t.lbm", text))
    assert (status, out, len(err)) == (2, "", 1)
    assert "the digits 0 to 9" in err[0]
    assert f":{text.count(chr(10)) + 1}:" in err[0]


def test_a_sampled_answer_without_a_state_that_counts_says_so(lbm, write):
    names = [f"x{i}" for i in range(40)]
    file = write("t.lbm", "\n".join(f"1: {a} ^ {b}" for a, b in pairwise(names)))
    rare = f"({' & '.join(names)}) | ({' & '.join(f'~{name}' for name in names)})"
    asked = ["ask", file, "x0", "--given", rare, "--distribution", "machine"]
    asked += ["--method", "gibbs", "--sweeps", "4", "--seed", "1"]
    status, out, _ = lbm(*asked)
    assert status == 3
    assert "no state of the chains counted" in out.splitlines()[0]
    assert "nan" not in out
    status, out, _ = lbm(*asked, "--json")
    found = json.loads(out)
    assert (status, found["probability"], found["r_hat"]) == (3, None, None)


# --- streams -------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-", ">/dev/full 2>/dev/full", ">&- 2>&-"])
def test_bad_input_exits_2_whatever_becomes_of_standard_error(write, where):
    file = write("t.lbm", "a -> b\n")
    for wrong in (f"ask '{file}' 'a &'", f"ask '{file}' zzz", "check nowhere.lbm", "nothing"):
        script = f"'{sys.executable}' -m lbm {wrong} {where}"
        assert subprocess.run(["sh", "-c", script], check=False, capture_output=True).returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_an_answer_stays_an_answer_where_remarks_go_nowhere(write):
    file = write("t.lbm", "a\n")
    for where in ("2>/dev/full", "2>&-"):
        script = f"'{sys.executable}' -m lbm sample '{file}' -n 1 {where}"
        done = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "a=1\n")


# --- tables and packages -------------------------------------------------------------------------


def test_a_table_of_one_row_is_refused_in_one_clear_line(lbm, write, tmp_path):
    pytest.importorskip("torch")
    status, out, err = lbm("train", write("one.csv", "a,b,y\n1,0,1\n"), "--target", "y", "-o", tmp_path / "m")
    assert (status, out) == (2, "")
    assert err == [
        f"lbm: {tmp_path / 'one.csv'}: expected rows of 2 classes at least to learn from, found 1 row"
    ]


def test_columns_that_are_all_constant_leave_the_shares_of_the_classes(lbm, write, tmp_path):
    pytest.importorskip("torch")
    file = write("two.csv", "a,b,y\n" + "1,0,1\n1,0,0\n" * 4)
    assert lbm("train", file, "--target", "y", "-o", tmp_path / "m", "--seed", "1")[0] == 0


BASE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import lbm
for name in ("AtomEncoder", "LBMClassifier", "LogicalRBM", "induce", "load_model", "save_model"):
    try:
        getattr(lbm, name)
        print(name)
    except ImportError as error:
        print(f"{type(error).__name__}: {error}")
"""


@pytest.mark.parametrize("missing", ["torch,sklearn,pandas", "torch", "sklearn", "pandas"])
def test_in_a_base_install_every_learner_names_its_extra(missing):
    done = run(BASE, missing)
    lines = done.stdout.splitlines()
    assert (len(lines), done.stderr) == (6, "")
    names = ("AtomEncoder", "LBMClassifier", "LogicalRBM", "induce", "load_model", "save_model")
    for name, line in zip(names, lines, strict=True):
        if line != name:
            assert line.startswith(f"MissingExtra: lbm.{name} needs the package ")
            assert line.endswith("pip install 'logical-boltzmann[train]'")
    assert lines[1:] != list(names[1:])


def test_without_matplotlib_draw_names_its_extra_and_relations_need_none():
    done = run(
        "import sys; sys.modules.update(dict.fromkeys(('matplotlib', 'torch', 'sklearn', 'pandas')))\n"
        "import lbm\n"
        "lbm.RelationalProblem, lbm.infer, lbm.load, lbm.save\n"
        "try:\n    lbm.draw\nexcept ImportError as error:\n    print(error)"
    )
    assert done.stderr == ""
    assert done.stdout.startswith("lbm.draw needs the package matplotlib")
    assert done.stdout.endswith("pip install 'logical-boltzmann[plots]'\n")


def test_reproduce_without_matplotlib_speaks_of_itself(tmp_path):
    done = run(
        "import sys; sys.modules['matplotlib'] = None; from lbm.views.entry import main; "
        "sys.exit(main(['reproduce', 'coverage', '--quick', '--out', sys.argv[1]]))",
        str(tmp_path / "out"),
    )
    assert done.returncode == 2
    assert done.stderr == (
        "lbm: lbm reproduce needs the package matplotlib, which is not installed: "
        "pip install 'logical-boltzmann[plots]'\n"
    )
