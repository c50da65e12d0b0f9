"""The report: one HTML file with everything in it, for any browser and any width, without a network."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any, Final

from lbm.knowledge.printed import counted
from lbm.trials.part import Section, Sheet
from lbm.trials.pictures import Picture
from lbm.trials.runner import Outcome
from lbm.trials.words import seconds

LISTED: Final = 30
"""Missing pieces of a part that are named; the others are counted."""

WIDE: Final = 640
"""Pixels past which a picture has a row of its own."""

LEAST: Final = 0.6
"""How far a picture may shrink."""

QUICK: Final = '<span class="quick">quick</span>'
BANNER: Final = (
    f'<p class="banner">{QUICK} This is a quick run: few seeds, small sizes, short budgets. It shows '
    "that everything works and roughly what comes out. Every number below is of that kind; "
    "<code>lbm reproduce all</code> does the full run.</p>"
)


def write_html(
    outcomes: Sequence[Outcome], about: Mapping[str, Any], pictures: Mapping[str, str], files: Sequence[str]
) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    outcomes
        What was measured, in order.
    about
        What the run says of itself; see :func:`lbm.trials.about.about_run`.
    pictures
        The text of an SVG file by the name of each picture that could be painted.
    files
        The table of raw numbers of each outcome, as a name beside the report.
    """
    quick = any(outcome.quick for outcome in outcomes)
    title = "Logical Boltzmann Machines: the paper reproduced"
    body = [
        f"<h1>{escape(title)}</h1>",
        _paragraph(
            "The figures of Tran and Garcez, *Logical Boltzmann Machines* (2021, arXiv:2112.05841), measured "
            "anew, with what this library does beside them. Each part says what was asked, what was found "
            "and how it was measured; nothing here needs the paper at hand."
        ),
        *([BANNER] if quick else []),
        _contents(outcomes),
        *(_part(outcome, pictures, file) for outcome, file in zip(outcomes, files, strict=True)),
        _end(about),
    ]
    style = resources.files("lbm.trials").joinpath("report.css").read_text("utf-8")
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(body) + "\n</body>\n</html>\n"


def _contents(outcomes: Sequence[Outcome]) -> str:
    links = "".join(
        f'<li><a href="#{escape(outcome.part.NAME)}">{escape(outcome.part.TITLE)}</a></li>'
        for outcome in outcomes
    )
    return f"<nav><ul>{links}</ul></nav>"


def _part(outcome: Outcome, pictures: Mapping[str, str], file: str) -> str:
    part, rows = outcome.part, outcome.rows
    badge = f" {QUICK}" if outcome.quick else ""
    section = part.section(rows)
    shown = [_figure(picture, pictures[picture.name], badge) for picture in part.draw(rows)
             if picture.name in pictures]  # fmt: skip
    lines = [f'<section id="{escape(part.NAME)}">', f"<h2>{escape(part.TITLE)}{badge}</h2>"]
    lines += map(_paragraph, section.about)
    if section.findings:
        lines += [f"<h3>What was found{badge}</h3>", _list(section.findings)]
    if shown:
        lines.append(f'<div class="pictures">{"".join(shown)}</div>')
    lines += [_table(table, badge) for table in section.tables]
    lines += [*_missing(outcome), *_how(outcome, section, file), "</section>"]
    return "\n".join(lines)


def _how(outcome: Outcome, section: Section, file: str) -> Iterator[str]:
    yield "<h3>How it was measured</h3>"
    for note in section.notes:
        yield f'<p class="note">{_inline(note)}</p>'
    said = [f"{counted(outcome.measured, 'piece')} measured in this run"]
    if outcome.found:
        said.append(f"{outcome.found:,} finished before, in the same directory")
    if outcome.kept:
        said.append(f"{outcome.kept:,} read from the full run that comes with the package")
    total = f"{counted(len(outcome.rows), 'row')}, {seconds(outcome.seconds)} of work in all"
    link = f'<a href="{escape(file)}">{escape(file)}</a>'
    yield f'<p class="note">{escape("; ".join(said))}; {escape(total)}. Raw numbers: {link}.</p>'


def _missing(outcome: Outcome) -> Iterator[str]:
    if not outcome.missing:
        return
    names = [f"{name} ({why})" for name, why in list(outcome.missing.items())[:LISTED]]
    if len(outcome.missing) > LISTED:
        names.append(f"and {len(outcome.missing) - LISTED:,} more")
    said = f"{len(outcome.missing):,} of {counted(len(outcome.pieces), 'piece')} are missing here"
    yield f'<div class="missing"><p>{escape(said)}:</p>{_list(names)}</div>'


def _figure(picture: Picture, svg: str, badge: str) -> str:
    width = _width(svg)
    wide = ' class="wide"' if width > WIDE else ""
    data = base64.b64encode(svg.encode()).decode()
    alt = escape(f"{picture.title}. {picture.caption}")
    least = f"min-width: {LEAST * width:.0f}px"  # below that letters are too small, and one has to scroll
    image = (
        f'<div class="scroll"><img style="{least}" alt="{alt}" src="data:image/svg+xml;base64,{data}"></div>'
    )
    words = f"<strong>{_inline(picture.title)}{badge}</strong> {_inline(picture.caption)}"
    return f"<figure{wide}>{image}<figcaption>{words}</figcaption></figure>"


def _width(svg: str) -> float:
    """Return the width of a picture in pixels of a page; an SVG file gives it in points."""
    found = re.search(r'<svg[^>]*\bwidth="([0-9.]+)pt"', svg)
    return float(found[1]) * 4 / 3 if found else 0.0


def _table(table: Sheet, badge: str) -> str:
    def line(cells: Iterable[str], tag: str) -> str:
        kinds = (' class="words"' if number in table.left else "" for number in range(len(table.head)))
        made = (f"<{tag}{kind}>{_inline(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    rows = "".join(line(row, "td") for row in table.rows)
    note = f'<p class="note">{_inline(table.note)}</p>' if table.note else ""
    return (
        f'<h3>{_inline(table.title)}{badge}</h3><div class="scroll"><table><thead>{line(table.head, "th")}'
        f"</thead><tbody>{rows}</tbody></table></div>{note}"
    )


def _end(about: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    rows = (
        ("command", f"`{about['command']}`"),
        ("date", str(about["date"])),
        ("machine", str(about["machine"])),
        ("versions", f"Python {about['python']}, {versions}"),
        (
            "seeds",
            "every piece of work is named by its parameters and draws all random numbers from them: the same "
            "piece gives the same numbers, times excepted",
        ),
    )
    lines = "".join(
        f'<tr><td class="words">{escape(name)}</td><td class="words">{_inline(text)}</td></tr>'
        for name, text in rows
    )
    return f'<section id="run"><h2>This run</h2><div class="scroll"><table>{lines}</table></div></section>'


# --- words -----------------------------------------------------------------------------------------


def _paragraph(text: str) -> str:
    return f"<p>{_inline(text)}</p>"


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>"


def _inline(text: str) -> str:
    """Return text as HTML: escaped, `code` between backquotes and *words* between stars.

    >>> _inline("`a < b` and *so*, 2 * 3")
    '<code>a &lt; b</code> and <em>so</em>, 2 * 3'
    """
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a backquote without its fellow is a backquote
        parts[-2:] = ["`".join(parts[-2:])]
    return "".join(
        f"<code>{part}</code>" if number % 2 else re.sub(r"\*(\w[^*]*?)\*", r"<em>\1</em>", part)
        for number, part in enumerate(parts)
    )
