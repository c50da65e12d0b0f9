"""The page: a theory and its network, evidence and its effects, and answers, each from a worker.

All that users have written is shown as text: in labels, cells and chips, never as HTML.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from lbm.reasoning.answers import number
from lbm.views.studio.copied import Clicked, clicked_of
from lbm.views.studio.gallery import GALLERY
from lbm.views.studio.workers import Workers

MAX_DRAWN: Final = 200
"""Hidden units up to which the network is drawn; of more there is a summary."""

MAX_CHIPS: Final = 100
"""Atoms up to which each has a chip."""

WORLDS: Final = 16
"""Worlds that are listed by their energy."""

PAUSE: Final = 0.1
"""Seconds without another key after which an edit is looked at."""

STATUSES: Final = {
    "entailed": "entailed: true in every model",
    "refuted": "refuted: true in no model",
    "preferred": "preferred: true in every best world",
    "dispreferred": "dispreferred: false in every best world",
    "undecided": "undecided",
}

_NEXT: Final[dict[bool | None, bool | None]] = {None: True, True: False, False: None}
_SIGNS: Final = {None: "?", True: "true", False: "false"}
_COLOURS: Final = {None: "grey-6", True: "primary", False: "deep-orange-8"}


def root_of(pool: Workers, theory: str, address: str = "") -> Callable[[], None]:
    """Return what builds the page for one tab; ``theory`` is shown where a link says no other."""

    def root() -> None:
        from nicegui import ui

        request = ui.context.client.request
        clicked = clicked_of(request.url.query if request is not None else "")
        if not clicked.theory:
            clicked = replace(clicked, theory=theory)
        Tab(pool, clicked, address).build()

    return root


class Tab:
    """One tab: what stands on it, and the elements that show it."""

    def __init__(self, pool: Workers, clicked: Clicked, address: str) -> None:
        self.pool, self.clicked, self.address = pool, clicked, address
        self.atoms: list[str] = []
        self.reasons: list[int] = []
        self.lit: dict[str, int] = {}
        self.machine: dict[str, Any] = {}
        self._work: asyncio.Task[None] | None = None

    # --- what is there -------------------------------------------------------------------------------

    def build(self) -> None:
        """Make the elements, and look at the theory."""
        from nicegui import ui

        ui.dark_mode(None)
        with ui.row().classes("w-full items-center"):
            ui.label("lbm studio").classes("text-xl")
            ui.select(list(GALLERY), label="Gallery", on_change=self._chosen).mark("gallery").classes("w-48")
            ui.link("JSON interface", "/api")
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-96"):
                self.editor = ui.codemirror(
                    self.clicked.theory, on_change=self._edited, line_wrapping=True
                ).mark("theory")
                self.editor.classes("w-full h-64").props('aria-label="Theory"')
                self.wrong = ui.label().mark("wrong").classes("text-red font-mono")
                self.size = ui.label().mark("size").classes("text-grey")
                self.clashing = ui.column()
                self.energy = ui.label().mark("energy").classes("font-mono text-xs break-all")
            with ui.column().classes("grow basis-96"):
                self.network = ui.echart(picture({}, {})).mark("network").classes("w-full h-80")
                self.unit = ui.label("Click a unit for its cube.").mark("unit").classes("text-grey")
                self.network.on_point_click(self._pointed)
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-72"):
                ui.label("Evidence: click an atom for true, false, unknown").classes("font-bold")
                self.chips = ui.column().classes("w-full gap-0")
                ui.label("Temperature").classes("font-bold")
                ui.slider(
                    min=0.1, max=10, step=0.1, value=self.clicked.temperature, on_change=self._warmed
                ).props('label aria-label="Temperature"').mark("temperature")
            with ui.column().classes("grow basis-96"):
                self.query = ui.input("Query: any formula", value=self.clicked.query, on_change=self._asked)
                self.query.mark("query").classes("w-full")
                self.sentence = ui.label().mark("sentence").classes("text-lg")
                self.bar = ui.linear_progress(0, show_value=False).mark("bar")
                self.status = ui.label().mark("status")
                self.why = ui.label().mark("why").classes("whitespace-pre-wrap font-mono")
                with ui.row():
                    for name, said in (
                        ("best", {"top": 5}),
                        ("models", {"limit": 50}),
                        ("count", {}),
                        ("sample", {"number": 20}),
                    ):
                        ui.button(name, on_click=self._on(name, said)).mark(name).props("outline")
                self.said = ui.label().mark("said")
                self.listed = ui.column().classes("w-full overflow-x-auto")
        with ui.expansion("Worlds by energy", value=True).classes("w-full"):
            self.worlds = ui.column().classes("w-full overflow-x-auto")
        with ui.expansion("Copy as Python, command, curl or link").classes("w-full"):
            self.copied = {
                name: ui.textarea(name)
                .props("readonly autogrow")
                .mark(f"as-{name}")
                .classes("w-full font-mono")
                for name in ("Python", "command", "curl", "link")
            }
        self._changed()

    # --- what was clicked ----------------------------------------------------------------------------

    def _chosen(self, event: Any) -> None:
        self.editor.value = GALLERY[event.value]

    def _edited(self, event: Any) -> None:
        self.clicked = replace(self.clicked, theory=event.value)
        self._changed(PAUSE)

    def _warmed(self, event: Any) -> None:
        self.clicked = replace(self.clicked, temperature=float(event.value))
        self._changed(PAUSE)

    def _asked(self, event: Any) -> None:
        self.clicked = replace(self.clicked, query=event.value or "")
        self._changed(PAUSE)

    def _turned(self, name: str) -> None:
        evidence = dict(self.clicked.evidence)
        value = _NEXT[evidence.pop(name, None)]
        if value is not None:
            evidence[name] = value
        self.clicked = replace(self.clicked, evidence=evidence)
        self._changed()

    def _left_out(self, line: int) -> None:
        """Make a comment of a line of the theory."""
        lines = self.clicked.theory.split("\n")
        lines[line - 1] = f"# {lines[line - 1]}"
        self.editor.value = "\n".join(lines)

    def _pointed(self, event: Any) -> None:
        units = self.machine.get("units", [])
        place = event.data_index - len(self.machine.get("atoms", []))
        if 0 <= place < len(units):
            unit = units[place]
            texts = "; ".join(self.machine["formulae"][each]["text"] for each in unit["formulae"])
            self.unit.text = f"h{place + 1}: {unit['cube']}, weight {unit['weight']}, of {texts}"

    def _on(self, name: str, said: dict[str, Any]) -> Callable[[], Any]:
        async def ask() -> None:
            reply = await self.pool.ask(name, self.clicked.said(**said))
            body = reply.body
            self.listed.clear()
            if reply.status or "answer" in body:
                self.said.text = body.get("reason", body.get("error", ""))
                return
            rows = [list(world.values()) for world in body["worlds"]] if name == "best" else []
            rows = rows or body.get("models" if name == "models" else "worlds", [])
            self.said.text = summary(name, body, len(rows))
            with self.listed:
                grid(self.atoms if name == "best" else body.get("atoms", []), rows, [])

        return ask

    # --- what follows from it ------------------------------------------------------------------------

    def _changed(self, pause: float = 0.0) -> None:
        """Look at everything anew, once nothing has changed for a moment; what was under way is dropped."""
        if self._work is not None:
            self._work.cancel()
        from nicegui import background_tasks

        self._work = background_tasks.create(self._look(pause))

    async def _look(self, pause: float) -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(pause)
            # Not cancelled inside: a worker that has nearly answered is not worth killing.
            await self._show(self.clicked)

    async def _show(self, clicked: Clicked) -> None:
        if not clicked.theory.strip():
            self._refused({"error": "write a formula, or choose from the gallery"})
            return
        compiled = await self.pool.ask("compile", {"theory": clicked.theory})
        if self.clicked != clicked:
            return
        if compiled.status:
            self._refused(compiled.body)
            return
        clicked = self._read(compiled.body)
        checked, marginals, best = [
            await self.pool.ask(name, said)
            for name, said in (
                ("check", {"theory": clicked.theory}),
                ("marginals", clicked.said(temperature=clicked.temperature)),
                ("best", clicked.said(top=WORLDS)),
            )
        ]
        if self.clicked != clicked:
            return
        self._checked(checked.body)
        self._likely(marginals.body)
        self._ordered(best.body)
        await self._answer(clicked)
        self._copy()

    def _refused(self, body: dict[str, Any]) -> None:
        """Show what is wrong with the theory, at the character."""
        self.wrong.text = body["error"]
        self.size.text = self.energy.text = ""
        self.clashing.clear()
        self.editor.decorations = marks(self.clicked.theory, [], body.get("line"), body.get("column"))
        self.sentence.text = self.status.text = self.why.text = ""

    def _read(self, machine: dict[str, Any]) -> Clicked:
        """Show the network; return what stands on the page, without evidence about atoms that have gone."""
        self.machine, self.wrong.text = machine, ""
        self.editor.decorations = []
        drawn = len(machine["units"]) <= MAX_DRAWN
        self.lit = {}
        self.network.options.clear()
        self.network.options.update(picture(machine if drawn else {}, {}))
        self.network.set_visibility(drawn)
        many = f"{len(machine['atoms'])} atoms and {len(machine['units'])} hidden units"
        self.unit.text = "Click a unit for its cube." if drawn else f"{many}: too many to draw"
        self.energy.text = machine["energy"] if drawn and machine["energy"] else many
        self.atoms = machine["atoms"]
        known = set(self.atoms)
        evidence = {name: value for name, value in self.clicked.evidence.items() if name in known}
        self.clicked = replace(self.clicked, evidence=evidence)
        return self.clicked

    def _checked(self, body: dict[str, Any]) -> None:
        from nicegui import ui

        self.clashing.clear()
        if "error" in body:
            self.size.text = body["error"]
            return
        self.size.text = f"{body['atoms']} atoms, {body['hard']} hard and {body['soft']} soft formulae"
        with self.clashing:
            for each in body["clash"]:
                with ui.row().classes("items-center"):
                    ui.label(f"clash, line {each['line']}: {each['text']}").classes("text-red").mark("clash")
                    if each["line"] is not None:
                        leave = ui.button("leave this one out", on_click=self._leaving(each["line"]))
                        leave.props("flat dense").mark("leave")

    def _leaving(self, line: int) -> Callable[[], None]:
        return lambda: self._left_out(line)

    def _likely(self, body: dict[str, Any]) -> None:
        from nicegui import ui

        chances = body.get("marginals", {})
        self.chips.clear()
        with self.chips:
            if len(self.atoms) > MAX_CHIPS:
                ui.label(f"{len(self.atoms)} atoms: the first {MAX_CHIPS} are shown").classes("text-grey")
            for place, name in enumerate(self.atoms[:MAX_CHIPS]):
                value, chance = self.clicked.evidence.get(name), chances.get(name)
                with ui.row().classes("w-full items-center no-wrap"):
                    chip = ui.chip(
                        f"{name}: {_SIGNS[value]}", color=_COLOURS[value], on_click=self._turning(name)
                    )
                    chip.mark(f"atom-{place}").props("tabindex=0 text-color=white")
                    chip.on("keydown.enter", self._turning(name))
                    ui.linear_progress(chance or 0.0, show_value=False).classes("w-32")
                    ui.label("" if chance is None else number(chance)).mark(f"chance-{place}")
            if "reason" in body or "error" in body:
                ui.label(str(body.get("reason", body.get("error")))).classes("text-red").mark("impossible")

    def _turning(self, name: str) -> Callable[[], None]:
        return lambda: self._turned(name)

    def _ordered(self, body: dict[str, Any]) -> None:
        worlds = body.get("worlds", [])
        self.worlds.clear()
        with self.worlds:
            rows = [list(world.values()) for world in worlds]
            grid(self.atoms, rows, body.get("scores", []), self._light)

    def _light(self, row: list[int]) -> None:
        """Show in the network which units are on in a world."""
        self.lit = dict(zip(self.atoms, row, strict=True))
        self.network.options.clear()
        self.network.options.update(picture(self.machine, self.lit))

    async def _answer(self, clicked: Clicked) -> None:
        if not clicked.query.strip():
            self.sentence.text = "Ask something: any formula over the atoms."
            self.status.text = self.why.text = ""
            self.bar.value = 0
            return
        said = clicked.said(query=clicked.query, why=True, temperature=clicked.temperature)
        reply = await self.pool.ask("ask", said)
        if self.clicked != clicked:
            return
        body = reply.body
        self.why.text = ""
        if reply.status or "answer" in body:
            self.sentence.text, self.status.text = body.get("reason", body.get("error", "")), ""
            self.bar.value = 0
            reasons = body.get("clash", [])
        else:
            self.sentence.text = sentence(body)
            self.bar.value = body["probability"] or 0.0
            self.status.text = STATUSES.get(body["status"], "status not settled")
            reasons = body["reasons"] or []
        if reasons:
            texts = [f"line {each['line']}: {each['formula']}" for each in reasons]
            self.why.text = "\n".join(["because of:" if "answer" not in body else "these clash:", *texts])
        self.editor.decorations = marks(clicked.theory, [each["line"] for each in reasons])

    def _copy(self) -> None:
        link = self.clicked.link(self.address)
        texts = {
            "Python": self.clicked.python(),
            "command": self.clicked.command(),
            "curl": self.clicked.curl(self.address),
            "link": link or "too long for a link: save the theory in a file",
        }
        for name, text in texts.items():
            self.copied[name].value = text


# --- pictures and words ------------------------------------------------------------------------------


def grid(atoms: list[str], rows: list[list[int]], scores: list[Any], on_row: Any = None) -> None:
    """Show worlds as a table, a row each; ``on_row`` is called with the one that is clicked."""
    from nicegui import ui

    if not rows:
        return
    head = [{"name": f"a{i}", "label": name, "field": f"a{i}"} for i, name in enumerate(atoms[:MAX_CHIPS])]
    head += [{"name": "score", "label": "score", "field": "score"}] if scores else []
    cells = [
        {f"a{i}": value for i, value in enumerate(row[:MAX_CHIPS])}
        | {"id": place}
        | ({"score": str(scores[place])} if scores else {})
        for place, row in enumerate(rows)
    ]
    table = ui.table(rows=cells, columns=head, row_key="id").props("dense flat")
    if on_row is not None:
        table.on("rowClick", lambda event: on_row(rows[event.args[1]["id"]]), [[], ["id"], None])


def sentence(facts: dict[str, Any]) -> str:
    """Return an answer as a sentence.

    >>> sentence({"query": "p", "given": "n", "probability": 0.5, "method": "exact", "interval": [0.5, 0.5]})
    'P(p | n) = 0.5'
    """
    about = facts["query"] if facts["given"] is None else f"{facts['query']} | {facts['given']}"
    if facts["probability"] is None:
        return f"P({about}) unknown: no state of the chains counted"
    if facts["method"] == "exact":
        return f"P({about}) = {number(facts['probability'])}"
    low, high = facts["interval"]
    found = f"P({about}) ≈ {facts['probability']:.4g}, 95 % interval {low:.4g} to {high:.4g}"
    return found if facts["converged"] else f"{found}; NOT CONVERGED"


def summary(name: str, facts: dict[str, Any], rows: int) -> str:
    """Return in words what a button found."""
    if name == "count":
        return f"{facts['count']} models"
    if name == "best":
        how = "proven best" if facts["optimal"] else f"the gap is {facts['gap']}"
        return f"satisfied {facts['satisfied']}, lost {facts['lost']}: {how}"
    if name == "models":
        return f"{rows} models, {'all of them' if facts['complete'] else 'and there may be more'}"
    return f"{rows} draws, {'independent' if facts['independent'] else 'states of chains'}"


def marks(
    text: str, lines: list[int | None], wrong: int | None = None, column: int | None = None
) -> list[dict[str, Any]]:
    r"""Return what the editor underlines: lines that settle a question, and the character that is wrong.

    >>> [(mark["from"], mark["to"]) for mark in marks("a &\nb", [2])]
    [(4, 5)]
    >>> [(mark["from"], mark["to"]) for mark in marks("a &\nb", [], 1, 3)]
    [(2, 3)]
    """
    starts, place = [0], text.find("\n")
    while place >= 0:
        starts.append(place + 1)
        place = text.find("\n", place + 1)
    found = []
    for line in lines:
        if line is not None and 0 < line <= len(starts):
            start = starts[line - 1]
            end = text.find("\n", start)
            found.append((start, len(text) if end < 0 else end, "underline decoration-2 decoration-blue-500"))
    if wrong is not None and 0 < wrong <= len(starts):
        start = min(starts[wrong - 1] + (column or 1) - 1, max(len(text) - 1, 0))
        found.append((start, start + 1, "underline decoration-wavy decoration-red-500"))
    return [
        {"kind": "mark", "from": start, "to": end, "class": style}
        for start, end, style in found
        if start < end <= len(text)
    ]


def picture(machine: dict[str, Any], lit: dict[str, int]) -> dict[str, Any]:
    """Return the network as a chart: atoms below, hidden units above; those that are on in a world are lit.

    A unit is on where its cube is true.
    """
    atoms, units = machine.get("atoms", []), machine.get("units", [])
    nodes = [
        {
            "id": f"x{i}",
            "name": name,
            "x": 100 * (i + 1) / (len(atoms) + 1),
            "y": 100,
            "symbolSize": 22,
            "itemStyle": {"color": _lamp(lit.get(name), True)},
        }
        for i, name in enumerate(atoms)
    ]
    places, links = {name: i for i, name in enumerate(atoms)}, []
    for j, unit in enumerate(units):
        on = None if not lit else all(lit.get(name) == (sign > 0) for name, sign in unit["literals"])
        nodes.append(
            {
                "id": f"h{j}",
                "name": f"h{j + 1}",
                "x": 100 * (j + 1) / (len(units) + 1),
                "y": 0,
                "symbol": "rect",
                "symbolSize": 16,
                "itemStyle": {"color": _lamp(on, False)},
            }
        )
        for name, sign in unit["literals"]:
            if name in places:
                style = {"type": "solid" if sign > 0 else "dashed", "width": 2}
                links.append({"source": f"x{places[name]}", "target": f"h{j}", "lineStyle": style})
    series = {
        "type": "graph",
        "layout": "none",
        "label": {"show": True, "position": "bottom"},
        "data": nodes,
        "links": links,
        "roam": True,
    }
    return {"animation": False, "series": [series], "tooltip": {"renderMode": "richText"}}


def _lamp(on: bool | int | None, atom: bool) -> str:
    if on is None:
        return "#5470c6" if atom else "#91a7d0"
    return "#f5b301" if on else "#9e9e9e"
