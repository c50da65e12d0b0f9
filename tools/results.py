"""Write docs/results.md, and the results in README.md, from the tables of the full run in the package.

    python tools/results.py                 # write both from src/lbm/trials/results/*.csv
    python tools/results.py --take DIR      # first take over the tables and figures of a full run in DIR
    python tools/results.py --check         # compare: exit 1 if one of them says something else

DIR is what `lbm reproduce --out DIR` was given. Only whole tables are taken: those of quick runs have other
names. What is written depends on the tables and on about.json beside them, and on nothing else.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lbm.trials.learners.relational import is_order
from lbm.trials.learners.sets import SETS
from lbm.trials.learners.standing import BEST, BEST_GROUPED, BEST_STRICT, PUBLISHED
from lbm.trials.part import Part, Row, Sheet
from lbm.trials.parts import PARTS, coverage, part_named, timing
from lbm.trials.storage import read_csv
from lbm.trials.words import seconds, times, whole

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "src" / "lbm" / "trials" / "results"
PAGE = ROOT / "docs" / "results.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- written by tools/results.py -->\n", "<!-- until here -->\n"

HEAD = """\
# Results

The figures of Tran and Garcez, *Logical Boltzmann Machines* (2021, [arXiv:2112.05841](https://arxiv.org/abs/2112.05841)),
measured anew by `lbm reproduce`, with what this library does beside them.

This page is written by `python tools/results.py` from the tables in `src/lbm/trials/results/`."""


def main() -> None:
    """Write the page, or compare it, after taking over the tables of a run if that is asked for."""
    parser = argparse.ArgumentParser(description="Write docs/results.md from the tables of the full run.")
    parser.add_argument("--take", type=Path, metavar="DIR", help="take over the tables and figures of a run")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there instead")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where tables are")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page is")
    parser.add_argument("--readme", type=Path, default=README, help="where the README is")
    options = parser.parse_args()
    if options.take:
        take(options.take, options.results, options.page.with_suffix(""))
    before, rest = options.readme.read_text(encoding="utf-8").split(BEGIN)
    readme = before + BEGIN + "\n" + summary(options.results) + "\n" + END + rest.split(END)[1]
    for path, text in ((options.page, page(options.results)), (options.readme, readme)):
        if not options.check:
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"results.py: {path} is not what {options.results} gives: run it without --check")


def take(run: Path, results: Path, pictures: Path) -> None:
    """Copy tables and figures of a full run, and note for each part what the run says of itself."""
    results.mkdir(parents=True, exist_ok=True)
    pictures.mkdir(parents=True, exist_ok=True)
    noted = results / "about.json"
    about = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
    said = json.loads((run / "about.json").read_text(encoding="utf-8"))
    for name in PARTS:
        table = run / f"{name}.csv"
        if not table.exists():
            continue
        part = part_named(name)
        rows = read_csv(table, part)  # says so if it does not fit
        shutil.copyfile(table, results / table.name)
        about[name] = said
        for picture in part.draw(rows):
            shutil.copyfile(run / "figures" / f"{picture.name}.svg", pictures / f"{picture.name}.svg")
    text = json.dumps({name: about[name] for name in PARTS if name in about}, ensure_ascii=False, indent=2)
    noted.write_text(text + "\n", encoding="utf-8")


def page(results: Path) -> str:
    """Return the page for the tables in a directory."""
    noted = results / "about.json"
    about = json.loads(noted.read_text(encoding="utf-8")) if noted.exists() else {}
    parts = [HEAD]
    for name in PARTS:
        table = results / f"{name}.csv"
        if table.exists():
            part = part_named(name)
            parts += section(part, read_csv(table, part), about.get(name, {}))
    if len(parts) == 1:
        sys.exit(f"results.py: no tables in {results}: --take DIR takes those of a run")
    return "\n\n".join(parts) + "\n"


def summary(results: Path) -> str:
    """Return what the README says of the tables in a directory."""
    found = {}
    for name in ("coverage", "time", "table"):
        table = results / f"{name}.csv"
        if table.exists():
            part = part_named(name)
            found[name] = part.section(read_csv(table, part)).headline
    said = [line for name in ("coverage", "time") if name in found for line in searched(name, found[name])]
    parts = ["\n".join(said)] if said else []
    if "table" in found:
        parts += learned(found["table"])
    return "\n\n".join(parts) + "\n"


def searched(name: str, headline: Mapping[str, Any]) -> list[str]:
    """Return a line for each figure of the paper about searching for models."""
    if name == "time":
        ours, paper = headline["seconds, N = 10, strict DNF"], timing.PAPER[10]
        return [
            f"- {seconds(ours)} to list all models of φ(20, 10), where the paper takes {seconds(paper)}: "
            f"{times(paper / ours)} faster."
        ]
    return [
        f"- {whole(ours)} samples of collapsed chains to see all {2**n - 1:,} models of φ({m}, {n}), where "
        f"the paper takes {whole(paper)}: {times(paper / ours)} fewer."
        for (m, n), paper in coverage.PAPER.items()
        for ours in (headline[f"samples, phi({m}, {n}), collapsed"],)
    ]


def learned(headline: Mapping[str, Any]) -> list[str]:
    """Return the learning table in short, and what its columns mean."""
    ways = ("LBM, paper", "LBM, honest", f"{BEST}, honest")
    lines = [
        (
            name,
            f"{max(column[place] for column in PUBLISHED.values()):.2f}",
            f"{PUBLISHED['LBM'][place]:.2f}",
            *(f"{headline[f'{name}, {way}']:.2f}" for way in ways),
        )
        for place, name in enumerate(SETS)
    ]
    apart = {
        learner: [headline[f"{name}, {learner}, honest"] for name in SETS if is_order(name)]
        for learner in (BEST_GROUPED, BEST_STRICT)
    }
    together, strict = (f"{min(values):.0f} to {max(values):.0f} %" for values in apart.values())
    head = ("accuracy, %", "published, best", "published, LBM", "LBM, paper's way", "LBM, honest", BEST)
    return [
        markdown(Sheet("", head, tuple(lines), left=(0,))),
        "The paper's way chooses the epoch on the test fold; honest: setting and epoch are chosen on "
        "training rows. The\nbest LBM, honest too, has columns of ours and, for drugs (`alz_`), rules that "
        "hold of any order. On the paper's folds\nthese know most test pairs by their mirrors; without them "
        f"it has {together} where both directions of a pair\nare in one fold, and {strict} for compounds it "
        "has not seen.",
    ]


def section(part: Part, rows: list[Row], about: dict[str, Any]) -> list[str]:
    """Return the paragraphs of one part."""
    said = part.section(rows)
    found = [f"## {part.TITLE}", *said.about]
    if said.findings:
        found.append("\n".join(f"- {finding}" for finding in said.findings))
    for picture in part.draw(rows):
        found.append(f"![{picture.title}](results/{picture.name}.svg)")
        found.append(f"*{picture.title}.* {picture.caption}")
    for table in said.tables:
        found += [f"### {table.title}", markdown(table), *([table.note] if table.note else [])]
    found += ["### How it was measured" + f" ({part.NAME})", *said.notes]
    if about:
        versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        found.append(
            f"Measured by `{about['command']}` on {about['date']}: {about['machine']}, Python "
            f"{about['python']}, {versions}."
        )
    return found


def markdown(table: Sheet) -> str:
    """Return a table as Markdown."""
    ends = ["---" if number in table.left else "---:" for number in range(len(table.head))]
    lines = [table.head, ends, *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    main()
