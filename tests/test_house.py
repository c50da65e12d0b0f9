"""Rules of the house that no linter knows."""

import ast
import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "lbm"
PRIVATE = re.compile(r"(?<!\w)_[A-Z][A-Z0-9_]*\b")


def private_constants(source: str) -> set[str]:
    """Return the names in capitals, with an underscore before them, that a module assigns."""
    found: set[str] = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        names = (node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name))
        found.update(name for name in names if PRIVATE.fullmatch(name))
    return found


def named(text: str, hidden: set[str]) -> set[str]:
    """Return which private constants a text names, be it in code, in a string or in a comment."""
    return hidden & set(PRIVATE.findall(text))


def test_no_test_names_a_private_constant_of_the_package() -> None:
    """Pass it as a parameter, let it be public and explained, or ask something large enough to reach it."""
    hidden = set().union(*(private_constants(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")))
    assert len(hidden) > 50  # which a test could name
    found = {
        str(path.relative_to(TESTS)): named(path.read_text("utf-8"), hidden) for path in TESTS.rglob("*.py")
    }
    assert len(found) > 50
    assert {path: names for path, names in found.items() if names} == {}


def test_a_private_constant_is_seen_however_it_is_named() -> None:
    source = (
        "_ROOMS: Final = 3  # in all\n_CELLAR, _ATTIC = 0, 2\nDOORS = 2\n_keys = {}\ndef f():\n    _OWN = 1\n"
    )
    hidden = private_constants(source)
    assert hidden == {"_ROOMS", "_CELLAR", "_ATTIC"}
    for text in ("house._ROOMS", 'setattr(house, "_ROOMS", 1)', "import _ROOMS, f", "'lbm.house._ROOMS'"):
        assert named(text, hidden) == {"_ROOMS"}
    for text in ("house.ROOMS", "MAX_ROOMS", "_ROOMS_LEFT", "__ROOMS", "_OWN", "house._keys"):
        assert not named(text, hidden)


def test_no_class_has_the_name_of_another() -> None:
    """One word for one idea, in the whole package."""
    names = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert len(names) > 200  # that could meet
    assert [name for name, number in names.items() if number > 1] == []


def test_no_two_modules_of_a_room_have_one_name() -> None:
    """A file's name says which one is meant, wherever in its room it lies."""
    rooms = [room for room in PACKAGE.iterdir() if (room / "__init__.py").exists()]
    assert len(rooms) > 8
    names = Counter(
        (room.name, path.name) for room in rooms for path in room.rglob("*.py") if path.name != "__init__.py"
    )
    assert [name for name, number in names.items() if number > 1] == []
