"""The page, by NiceGUI's simulated user: what is clicked and typed, and what is then seen."""

import asyncio

import pytest

from lbm.views.studio.copied import Clicked
from lbm.views.studio.gallery import GALLERY
from lbm.views.studio.workers import Workers

pytest.importorskip("nicegui", reason="needs the extra studio")

NIXON = GALLERY["Nixon diamond"]
ADDRESS = "http://127.0.0.1:8080"
SCRIPT = "<img src=x onerror=alert(1)>"


def visit(talk, path="/", theory=NIXON):
    """Let a user open the page, and talk to it with a worker behind it."""
    from nicegui.testing import user_simulation

    from lbm.views.studio.page import root_of

    async def work():
        async with Workers(1) as pool, user_simulation(root_of(pool, theory, ADDRESS)) as user:
            await user.open(path)

            async def see(text, **where):
                await user.should_see(text, **where, retries=300)

            await talk(user, see)

    asyncio.run(asyncio.wait_for(work(), 100))


def the(user, marker):
    [found] = user.find(marker=marker).elements
    return found


def test_nixon_from_evidence_to_why_and_a_clash_to_what_is_left_out():
    async def talk(user, see):
        await see("4 atoms, 0 hard and 4 soft formulae")
        assert len(the(user, "network").options["series"][0]["data"]) == 4 + 7
        user.find(marker="atom-0").click()  # n is true
        await see("n: true")
        user.find(marker="query").type("r")
        await see("P(r | n) = 1")
        await see("preferred: true in every best world")
        await see("line 2: n -> r", marker="why")
        user.find(marker="best").click()
        await see("satisfied 2010, lost 10: proven best")
        user.find(marker="count").click()
        await see("8 models")
        user.find(marker="atom-0").click()
        await see("n: false")
        the(user, "theory").value = "a\n~a | b\n~b\nc"
        await see("clash, line 1: a")
        assert len(user.find(marker="clash").elements) == 3
        await see("the hard formulae allow no world", marker="impossible")
        with user:
            first = min(user.find(marker="leave").elements, key=lambda button: button.id)
            first._handle_event({"listener_id": next(iter(first._event_listeners)), "args": None})
        await see("3 hard and 0 soft")
        await user.should_not_see("clash, line")
        user.find(marker="query").clear().type("~a")
        await see("entailed: true in every model")
        await see("line 2: ~a | b")
        marked = the(user, "theory").decorations
        assert [(mark["from"], mark["to"]) for mark in marked] == [(4, 10), (11, 13)]

    visit(talk)


def test_what_users_write_is_shown_as_text_and_what_is_wrong_at_its_character():
    async def talk(user, see):
        await see(f"{SCRIPT}: ?")
        the(user, "theory").value = f"'{SCRIPT}'\n{SCRIPT}"
        await see("theory:2:1: expected a formula", marker="wrong")
        [mark] = the(user, "theory").decorations
        assert mark["from"] == len(SCRIPT) + 3
        the(user, "theory").value = ""
        await see("write a formula, or choose from the gallery")

        from nicegui import ui

        with user:
            assert not any(isinstance(each, ui.html) for each in user.client.elements.values())

    visit(talk, theory=f"'{SCRIPT}' | b")


def test_a_link_reproduces_the_page_and_what_is_copied_names_it():
    clicked = Clicked(NIXON, "p", {"n": True}, 2.0)

    async def talk(user, see):
        await see("n: true")
        await see("P(p | n) = 0.5")
        await see("undecided")
        for _ in range(100):
            if the(user, "as-link").value:
                break
            await asyncio.sleep(0.05)
        assert the(user, "as-link").value == clicked.link(ADDRESS)
        assert the(user, "as-Python").value == clicked.python()
        assert the(user, "as-command").value == clicked.command()
        assert the(user, "as-curl").value == clicked.curl(ADDRESS)

    visit(talk, clicked.link())
