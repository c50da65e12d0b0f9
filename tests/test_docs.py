"""The pages under docs/: what they name exists, and what they show is what happens."""

import importlib
import pkgutil
import re
import shlex
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

import pytest

import lbm
import lbm.knowledge
from lbm.views.entry import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOT_DEFINED = ("__version__", "datasets", "nn")  # in a module: one is a string, the others packages
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def find(dotted: str) -> object:
    """Return what a dotted name stands for: the longest part of it that is a module, then attributes."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(dotted)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(lbm(?:\.\w+)+)`", page("equations.md")))))
def test_every_function_on_the_page_of_equations_exists(name: str) -> None:
    assert find(name) is not None


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", page("equations.md")))))
def test_every_test_on_the_page_of_equations_exists(name: str) -> None:
    file, _, test = name.partition("::")
    assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_row_on_the_page_of_equations_has_a_function_and_a_test_or_says_why_not() -> None:
    rows = [line.split(" | ") for line in page("equations.md").splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[0] not in ("| in the paper", "| what", "| ---")]
    assert len(rows) > 40
    for _, here, held, *_ in rows:
        if "`lbm." in here:
            assert "`tests/" in held or "[below](#" in held
        else:
            assert here.startswith("not ")


def test_every_equation_and_result_of_the_paper_is_on_its_page() -> None:
    text = page("equations.md")
    listed = set()
    for first, last in re.findall(r"Equations? (\d+)(?: and (\d+))?", text):
        listed |= {int(number) for number in (first, last) if number}
    assert listed == set(range(1, 15))
    results = ("Definition 1", "Definition 2", "Lemma 1", "Theorem 1", "Proposition 1", "Proposition 2")
    others = ("Example 1", "Example 2", "Table 1", "Table 2", *(f"Figure {number}" for number in range(1, 6)))
    for name in (*results, *others):
        assert name in text


def test_the_reference_lists_what_can_be_imported_from_the_package() -> None:
    text = page("reference.md")
    listed = re.findall(r"^\| `lbm\.(\w+)` \| .* \| `(lbm[\w.]*)` \|$", text, re.MULTILINE)
    assert sorted(name for name, _ in listed) == sorted(lbm.__all__)
    for name, home in listed:
        assert getattr(find(home), name) is getattr(lbm, name)


def test_the_reference_explains_every_name_it_lists_and_nothing_that_is_internal() -> None:
    text = page("reference.md")
    homes = {name: getattr(lbm, name).__module__ for name in lbm.__all__ if name not in NOT_DEFINED}
    questions = {name: f"{home}.Reasoner" for name, home in homes.items() if hasattr(lbm.Reasoner, name)}
    public = {f"{home}.{name}" for name, home in {**homes, **questions}.items()}
    answers = set(re.findall(r"^\| .* \| `(lbm[\w.]+\.[A-Z]\w+)` \|$", text, re.MULTILINE))
    assert len(answers) == 11
    shown = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
    layers = {f"{getattr(lbm.nn, name).__module__}.{name}" for name in lbm.nn.__all__}
    assert sorted(shown) == sorted({*public, *answers, *layers, "lbm.errors"})
    for name in shown:
        assert find(name).__doc__


def test_names_of_the_package_are_loaded_from_where_they_are_defined() -> None:
    homes = {name: find(getattr(lbm, name).__module__) for name in lbm.__all__ if name not in NOT_DEFINED}
    for name, home in homes.items():
        assert getattr(home, name) is getattr(lbm, name)
    there = {name for home in homes.values() for name in vars(home) if not name.startswith("_")}
    loaded = {name for name in there if callable(getattr(lbm, name, None))}
    assert loaded == {*homes, "distance"}  # an older name, which is not listed
    assert list(lbm.__all__) == sorted(lbm.__all__)
    assert dir(lbm) == lbm.__all__


def test_the_page_of_internals_has_every_module_but_the_errors() -> None:
    text = page("internals.md")
    modules = {
        module.name
        for module in pkgutil.walk_packages(lbm.__path__, "lbm.")
        if not module.ispkg
        and not module.name.startswith(("lbm.views.commands.", "lbm.__main__", "lbm.errors"))
    }
    assert set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)) == modules


GLOSSARY = re.findall(r"^\| (?!here|---)([^|]+) \| ([^|]+) \| [^|]+ \|$", page("glossary.md"), re.MULTILINE)


@pytest.fixture(scope="module")
def source() -> list[str]:
    """Every module as one line, without its marks of emphasis, for words that were broken over lines."""
    files = [*(ROOT / "src").rglob("*.py")]
    return [re.sub(r"[\s*]+", " ", file.read_text(encoding="utf-8")) for file in files]


@pytest.mark.parametrize(("plain", "field"), GLOSSARY)
def test_a_word_of_the_glossary_is_in_the_code_with_the_word_of_the_field_in_brackets(
    plain: str, field: str, source: list[str]
) -> None:
    using = [text for text in source if re.search(rf"\b{re.escape(plain)}", text, re.IGNORECASE)]
    assert using
    for word in field.split(", "):
        brackets = re.compile(rf"\([^()]*\b{re.escape(word)}", re.IGNORECASE)
        assert any(brackets.search(text) for text in using), word


def test_the_glossary_has_each_word_once() -> None:
    assert len(GLOSSARY) > 40
    words = [word for plain, field in GLOSSARY for word in (plain, *field.split(", "))]
    assert len({word.lower() for word in words}) == len(words)


def test_limits_of_what_is_read_have_the_values_the_pages_say() -> None:
    text = page("text-format.md") + page("formats.md")
    rows = re.findall(r"^\| `([\w.]+\.MAX_\w+)` \| ([\d,e]+) \|", text, re.MULTILINE)
    for name, value in rows:
        assert Decimal(str(find(name))) == Decimal(value.replace(",", ""))
    homes = [module.name for module in pkgutil.iter_modules(lbm.knowledge.__path__, "lbm.knowledge.")]
    # What a module defines, not what it imports.
    source = {home: Path(find(home).__file__).read_text(encoding="utf-8") for home in homes}
    limit = re.compile(r"^(MAX_\w+): Final", re.MULTILINE)
    defined = {f"{home}.{name}" for home in homes for name in limit.findall(source[home])}
    assert {name for name, _ in rows} == defined


def test_the_reserved_words_of_the_text_format_are_all_on_its_page() -> None:
    from lbm.knowledge.formula import RESERVED

    paragraph = page("text-format.md").partition("**Reserved words**")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", paragraph)) == RESERVED


LEFT_OUT = {
    "make": "sets up an environment of its own, and runs all this",
    "lbm induce": "a minute or more; tests/views/test_relations.py asks for less",
    "lbm reproduce": "minutes, and hours in full; tests/trials run its parts",
    "lbm mcp": "waits for an assistant; tests/views/studio/test_studio_assistants.py talks to it",
    "lbm studio": "serves until it is interrupted; tests/views/studio ask it",
    "lbm warm": "minutes of compiling where nothing is stored yet; tests/views/test_warm.py",
}
"""Commands on our pages that are not run here, and why not."""

LEARNING = ("train", "predict", "rules")
"""Commands that need the extra `train`."""

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def command_lines(text: str) -> list[str]:
    """Return what a page tells people to type: indented lines, and those with a ``$`` in other blocks.

    Blocks called ``console`` also say what is printed: they are compared below.
    """
    fence = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fence.findall(text) if language != "console"]
    prompts = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    outside = fence.sub("", text)
    return prompts + re.findall(r"^(?: {4}|\t)((?:lbm|make|python|pip) .*)$", outside, re.MULTILINE)


def test_command_lines_are_found_on_our_pages() -> None:
    found = {path.name: len(command_lines(path.read_text(encoding="utf-8"))) for path in PAGES}
    assert {name: number for name, number in found.items() if number} == {
        "README.md": 16,
        "learning.md": 3,
        "relations.md": 2,
        "studio.md": 1,
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_line_runs_in_a_clone(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are run one after the other, beside a copy of examples/: what one writes the next may read."""
    copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for line in command_lines(path.read_text(encoding="utf-8")):
        if any(line.startswith(name) for name in LEFT_OUT):
            continue
        program, *arguments = shlex.split(line, comments=True)
        assert program == "lbm", line
        if arguments[0] in LEARNING and find_spec("torch") is None:
            continue
        assert main(arguments) == 0, f"{line}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_and_option_that_a_page_mentions_exists(path: Path) -> None:
    from typer.main import get_command

    from lbm.views.commands import app

    known = {
        name: {option for part in command.params for option in (*part.opts, *part.secondary_opts)}
        for name, command in get_command(app).commands.items()
    }
    text = path.read_text(encoding="utf-8")
    spans = re.findall(r"(?<!`)`(lbm [a-z][^`\n]*)`", text)
    for line in [*spans, *command_lines(text), *re.findall(r"^\$ (lbm .*)$", text, re.MULTILINE)]:
        program, name, *words = shlex.split(line, comments=True)
        if program == "lbm":
            assert name in known, line
            used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert used <= known[name], line


@pytest.mark.parametrize(
    "name", sorted(path.name for path in DOCS.glob("*.md") if "```console" in page(path.name))
)
def test_commands_print_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blocks with a file's name as title are written to that file; ``$ lbm ...`` is run beside them."""
    monkeypatch.chdir(tmp_path)
    ran = 0
    for language, title, text in FENCE.findall(page(name)):
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
        if language != "console":
            continue
        for block in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, expected = block.partition("\n")
            program, *arguments = shlex.split(command)
            assert program == "lbm"
            main(arguments)
            said = capsys.readouterr()
            assert said.out + said.err == expected
            ran += 1
    assert ran
