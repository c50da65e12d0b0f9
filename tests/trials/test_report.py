"""The report is one file that needs nothing else, and says what was measured and what was not."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lbm.trials import parts
from lbm.trials.about import about_run
from lbm.trials.part import Piece
from lbm.trials.pictures import Chart, Curve, Mark
from lbm.trials.report import write_html
from lbm.trials.runner import run_part
from lbm.views.entry import main
from lbm.views.figures import paint
from tests.trials import slow_part

ROOT = Path(__file__).parents[2]
ALONE = {"meta", "img", "br", "!doctype"}


class Checker(HTMLParser):
    """Collects tags and text, and insists that every tag is closed in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.words = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def checked(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setitem(parts.PARTS, "slow", "tests.trials.slow_part")
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return slow_part


def made(outcome, name="slow.csv"):
    pictures = {picture.name: paint(picture) for picture in outcome.part.draw(outcome.rows)}
    return write_html([outcome], about_run("lbm reproduce <slow>", quick=outcome.quick), pictures, [name])


def test_a_report_is_whole_html_that_needs_no_network_and_runs_nothing(slow, tmp_path):
    text = made(run_part(slow, tmp_path))
    page = checked(text)
    assert not {"script", "link", "iframe", "object"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        if tag == "img":
            assert attributes["src"].startswith("data:image/svg+xml;base64,")
            assert attributes["alt"]
        if tag == "a":
            assert attributes["href"].startswith("#") or attributes["href"] == "slow.csv"
    assert "url(" not in text
    assert "@import" not in text
    assert "width=device-width" in text


def test_whatever_a_part_says_is_text_and_not_markup(slow, tmp_path):
    words = " ".join(checked(made(run_part(slow, tmp_path))).words)
    for said in ("Slow <pieces> & others", "<script>alert(1)</script>", "x < y", "<b>3</b>", "T <t>"):
        assert said in words
    assert "lbm reproduce <slow>" in words


def test_a_quick_report_marks_every_table_and_picture(slow, tmp_path):
    quick, whole = made(run_part(slow, tmp_path / "q", quick=True)), made(run_part(slow, tmp_path / "w"))
    assert "quick run" in quick
    assert quick.count('<span class="quick">') == 5  # banner, title, findings, picture, table
    assert '<span class="quick">' not in whole


def test_missing_pieces_are_listed_and_many_are_counted(slow, tmp_path, monkeypatch):
    monkeypatch.setattr(slow, "pieces", lambda quick: [Piece({"number": n}, 1.0) for n in range(50)])
    text = made(run_part(slow, tmp_path, seconds=0.5))
    assert "50 of 50 pieces are missing" in text
    assert text.count("not run: budget") == 30
    assert "and 20 more" in text


# --- pictures --------------------------------------------------------------------------------------


def test_a_chart_is_svg_with_its_words_and_the_same_bytes_every_time():
    curves = (
        Curve("a $ b", (1.0, 10.0), (1.0, 2.0), 0, (0.5, 1.5), (1.5, 2.5)),
        Curve("dashed", (1.0, 10.0), (2.0, 1.0), 1, look="dashes"),
        Curve("dots", (1.0,), (2.0,), 2, look="dots"),
        Curve("bars", (1.0,), (2.0,), 3, look="bars"),
    )
    marks = (Mark(5.0, "here", 1.5), Mark(2.0, "line"))
    chart = Chart("c", "t", "c", "x", "y", curves, marks, x_log=True, y_log=True, space=1e6)
    first = paint(chart)
    assert first == paint(chart)
    assert ElementTree.fromstring(first).tag.endswith("svg")


def test_places_have_names_and_dots_have_their_intervals():
    bare = Curve("dots", (1.0, 2.0), (3.0, 4.0), 0, look="dots")
    wide = replace(bare, low=(2.0, 3.0), high=(4.0, 6.0))
    chart = Chart("c", "t", "c", "set", "y", (wide,), places=("krk", "alz_amine"))
    painted = paint(chart)
    assert "krk" in painted
    assert "alz_amine" in painted
    assert len(painted) > len(paint(replace(chart, curves=(bare,))))


def test_a_curve_that_is_not_one_is_refused():
    with pytest.raises(ValueError, match="expected a look among line, dashes, dots, bars, got 'loud'"):
        Curve("a", (1.0,), (1.0,), 0, look="loud")
    with pytest.raises(ValueError, match="as many values as places along the curve 'a'"):
        Curve("a", (1.0,), (1.0, 2.0), 0)


# --- the command -----------------------------------------------------------------------------------


def test_the_command_writes_report_tables_and_figures_and_finds_them_again(tmp_path, capsys):
    out = tmp_path / "run"
    order = ["reproduce", "softplus", "xor", "--quick", "--out", str(out), "--json"]
    assert main(order) == 0
    first = json.loads(capsys.readouterr().out)
    assert list(first["parts"]) == ["xor", "softplus"]  # in the order of the report
    assert first["parts"]["xor"]["headline"]["hidden units, Nixon diamond, sdnf"] == 7
    checked(Path(first["report"]).read_text(encoding="utf-8"))
    names = {path.relative_to(out).as_posix() for path in out.rglob("*.*")}
    assert {"report.quick.html", "xor.quick.csv", "softplus.quick.csv", "figures/softplus.svg"} <= names
    table = (out / "xor.quick.csv").read_bytes()
    assert main(order) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["parts"]["xor"]["measured"] == 0
    assert (out / "xor.quick.csv").read_bytes() == table


def test_a_run_without_time_says_so_and_ends_with_three(tmp_path, capsys):
    assert main(["reproduce", "xor", "--seconds", "0.001", "--out", str(tmp_path)]) == 3
    said = capsys.readouterr().out
    assert "6 of 6 pieces are missing; the first: not run: budget" in said
    assert "not run: budget" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (["xors"], "did you mean 'xor'?"),
        (["xor", "--jobs", "0"], "expected a number of jobs"),
        (["xor", "--seconds", "-1"], "expected a number above 0"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(order, said, tmp_path, capsys):
    assert main(["reproduce", *order, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_directory_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "xor", "--out", str(tmp_path / "file" / "below")]) == 2
    assert "cannot make the directory" in capsys.readouterr().err


# --- the page --------------------------------------------------------------------------------------


def test_the_page_of_results_is_what_the_stored_tables_give():
    order = [sys.executable, str(ROOT / "tools" / "results.py"), "--check"]
    assert subprocess.run(order, check=False, capture_output=True, text=True).stderr == ""


def test_tables_of_a_run_are_taken_over_and_give_a_page(tmp_path):
    run, results, page = tmp_path / "run", tmp_path / "results", tmp_path / "page.md"
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- written by tools/results.py -->\nstale\n<!-- until here -->\nafter\n")
    assert main(["reproduce", "softplus", "--out", str(run)]) == 0
    order = [
        sys.executable,
        str(ROOT / "tools" / "results.py"),
        "--results",
        str(results),
        "--page",
        str(page),
        "--readme",
        str(readme),
    ]
    subprocess.run([*order, "--take", str(run)], check=True)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Results\n")
    for name in re.findall(r"\]\(results/(.*?)\)", text):
        assert (tmp_path / "page" / name).exists()
    assert (results / "softplus.csv").read_bytes() == (run / "softplus.csv").read_bytes()
    assert subprocess.run([*order, "--check"], check=False).returncode == 0
    assert readme.read_text().split("<!--")[0::2] == ["before\n", " until here -->\nafter\n"]
    assert "stale" not in readme.read_text()
    page.write_text(text + " ", encoding="utf-8")
    assert subprocess.run([*order, "--check"], check=False, capture_output=True).returncode == 1
