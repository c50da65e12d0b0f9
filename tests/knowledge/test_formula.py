"""Formulae: one object per formula at any depth, and truth as logic books have it."""

import contextlib
import copy
import pickle
import random
import re
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lbm.knowledge.formula as formula_module
from lbm.errors import LimitExceeded, UnknownAtom
from lbm.knowledge.formula import (
    FALSE,
    RESERVED,
    TRUE,
    Formula,
    atleast,
    atmost,
    atom,
    atoms_of,
    cardinality,
    conjunction,
    disjunction,
    exactly,
    fold,
    from_steps,
    holds,
    iff,
    implies,
    postorder,
    to_steps,
)
from lbm.knowledge.parser import parse
from tests.oracles import columns, parts, sat, truth, truth_table, worlds
from tests.strategies import BINARY, CARDINALITIES, NAMES, awkward_names, formulae, random_formula

DEPTH = 300_000
a, b, c = map(atom, "abc")


def rebuild(formula):
    """Make a formula again from the public functions, part by part."""
    made = {}
    for node in parts(formula):
        below = [made[part] for part in node.args]
        if node.kind == "atom":
            made[node] = atom(node.label)
        elif node.kind in ("true", "false"):
            made[node] = TRUE if node.kind == "true" else FALSE
        elif node.kind == "not":
            made[node] = ~below[0]
        elif node.kind in BINARY:
            made[node] = BINARY[node.kind](*below)
        else:
            counted = {"atleast": atleast, "atmost": atmost, "exactly": exactly}[node.kind]
            made[node] = counted(node.label, *below)
    return made[formula]


def deep(depth=DEPTH):
    """Return a formula with every connective, nested to the left, to the right and in the middle."""
    found = a
    steps = (
        lambda f: ~f,
        lambda f: f & b,
        lambda f: b | f,
        lambda f: f ^ c,
        lambda f: b >> f,
        lambda f: f >> c,
        lambda f: iff(c, f),
        lambda f: exactly(1, b, f, c),
    )
    for i in range(depth):
        found = steps[i % len(steps)](found)
    return found


# --- one formula, one object ---------------------------------------------------------------------


@given(formulae(awkward_names))
def test_a_formula_made_again_is_the_same_object(formula):
    assert rebuild(formula) is formula


@given(formulae(), formulae())
def test_formulae_are_equal_only_if_they_are_written_alike(left, right):
    assert (left == right) is (str(left) == str(right)) is (left is right)
    assert (left != right) is not (left == right)
    assert len({left, right}) == 1 + (left != right)


@given(formulae(awkward_names))
def test_copies_pickles_and_steps_give_back_the_same_object(formula):
    assert copy.copy(formula) is formula
    assert copy.deepcopy([formula])[0] is formula
    assert from_steps(to_steps(formula)) is formula
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(formula, protocol)) is formula


@given(st.lists(formulae(), max_size=4))
def test_a_pickle_keeps_what_formulae_share(listed):
    assert all(x is y for x, y in zip(pickle.loads(pickle.dumps(listed)), listed, strict=True))


def test_a_pickle_read_by_another_process_is_the_formula_it_was():
    formula = random_formula(random.Random(4), 12, 60)
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer), end='')"
    command = [sys.executable, "-X", "utf8", "-c", code]
    ran = subprocess.run(command, input=pickle.dumps(formula), capture_output=True, check=False)
    assert parse(ran.stdout.decode()) is formula, ran.stderr.decode()


def test_threads_that_make_the_same_formula_get_one_object():
    made, workers = [], 8
    start = threading.Barrier(workers)
    interval = sys.getswitchinterval()

    def work():
        start.wait()
        mine = []
        for round_ in range(300):
            left, right = atom(f"thread {round_}"), atom(f"other {round_}")
            mine.append(exactly(1, ~(left & right), left ^ right))
        made.append(mine)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(made) == workers
    assert all(len({id(mine[i]) for mine in made}) == 1 for i in range(300))


def test_threads_that_drop_and_make_the_same_formula_never_hold_two():
    wrong = []

    def work():
        for _ in range(3000):
            first = atom("dropped at once") & a
            if (atom("dropped at once") & a) is not first:
                wrong.append(first)
            del first

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


MEMORY = """
import gc, tracemalloc, weakref
from lbm.knowledge.formula import atom

def burden():
    kept = [atom(f"passing {i}") & ~atom(f"passing {i + 1}") for i in range(10_000)]
    return weakref.ref(kept[0]), weakref.ref(kept[-1].args[1])

tracemalloc.start()
held = []
for _ in range(4):
    references = burden()
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    held.append(tracemalloc.get_traced_memory()[0])
most = tracemalloc.get_traced_memory()[1]
assert most > 5_000_000, most
assert max(held) < most / 3, (held, most)  # what stays is the table's own room, which does not grow
assert held[-1] - held[0] < most / 20, (held, most)
"""


def test_memory_is_given_back_when_formulae_go():
    # In a process of its own: here the table may be large already, and move while we look.
    ran = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_formulae_alive_at_the_end_of_the_process_go_without_a_word():
    code = "import sys, lbm.knowledge.formula as late; sys.kept = [late, late.atom('a') & ~late.atom('b')]"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


# --- any depth -----------------------------------------------------------------------------------


def test_formulae_three_hundred_thousand_deep_work_like_any_other():
    formula, again = deep(), deep()
    assert formula is again
    assert formula == again
    assert hash(formula) == hash(again)
    assert copy.deepcopy(formula) is formula
    assert pickle.loads(pickle.dumps(formula)) is formula
    assert parse(str(formula)) is formula
    assert len(repr(formula)) < 1100
    assert set(atoms_of(formula)) == {"a", "b", "c"}
    arrays = {name: np.array([world[name] for world in worlds("abc")]) for name in "abc"}
    table = truth_table(formula, "abc")
    assert holds(formula, arrays).tolist() == [bool(table >> i & 1) for i in range(8)]


def test_dropping_a_deep_formula_needs_no_deep_stack():
    code = f"""
import threading
from lbm.knowledge.formula import atom, exactly
def work():
    for make in (lambda f: ~f, lambda f: f & b, lambda f: exactly(1, b, f)):
        b = f = atom("b")
        for _ in range({DEPTH}):
            f = make(f)
        del f
    print("done")
threading.stack_size(256 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr


def test_a_formula_that_stands_for_endless_text_is_walked_in_its_own_size(monkeypatch):
    formula = a
    for _ in range(200):
        formula = formula ^ iff(formula, b)
    assert len(list(postorder(formula))) == 402
    assert pickle.loads(pickle.dumps(formula)) is formula
    assert holds(formula, {"a": True, "b": False}) is truth(formula, {"a": True, "b": False})
    assert repr(formula).endswith(" ...>")
    monkeypatch.setattr(formula_module, "MAX_TEXT", 50_000)
    with pytest.raises(LimitExceeded, match="MAX_TEXT") as caught:
        str(formula)
    assert (caught.value.limit, caught.value.value) == ("MAX_TEXT", 50_000)


# --- walking -------------------------------------------------------------------------------------


@given(st.lists(formulae(), min_size=1, max_size=3))
def test_postorder_yields_every_part_once_below_before_above(listed):
    order = list(postorder(*listed))
    place = {node: i for i, node in enumerate(order)}
    assert len(place) == len(order)
    assert set(order) == {part for formula in listed for part in parts(formula)}
    assert all(place[part] < i for node, i in place.items() for part in node.args)


@given(formulae())
def test_atoms_come_in_the_order_in_which_they_are_written(formula):
    written = re.findall(r"\b[a-f]\b", str(formula))
    assert list(atoms_of(formula)) == list(dict.fromkeys(written))


@given(formulae())
def test_fold_visits_each_part_once(formula):
    visits = Counter()

    def size(node, below):
        visits[node] += 1
        return 1 + sum(below)

    def written(node):
        return 1 + sum(map(written, node.args))

    assert fold(formula, size) == written(formula)
    assert visits == Counter(parts(formula))


# --- truth ---------------------------------------------------------------------------------------


@given(formulae())
def test_a_formula_holds_where_truth_tables_say(formula):
    table = truth_table(formula, NAMES)
    for i, world in enumerate(worlds(NAMES)):
        assert holds(formula, world) is truth(formula, world) is bool(table >> i & 1)


@given(formulae())
def test_many_worlds_at_once_get_the_same_truth_values(formula):
    listed = list(worlds(NAMES))
    for kind in (bool, np.int8):
        arrays = {name: np.array([world[name] for world in listed], dtype=kind) for name in NAMES}
        many = np.broadcast_to(holds(formula, arrays), len(listed))  # a constant is one value for all worlds
        assert many.tolist() == [truth(formula, world) for world in listed]


@given(formulae())
def test_worlds_of_numbers_are_worlds_of_truth_values(formula):
    for world in list(worlds(NAMES))[::7]:
        numbers = {name: int(value) for name, value in world.items()}
        rows = {name: np.bool_(value) for name, value in world.items()}
        assert holds(formula, numbers) is truth(formula, world)
        assert holds(formula, rows) == truth(formula, world)


@given(formulae())
def test_a_solver_finds_a_model_exactly_if_the_table_has_one(formula):
    model = sat(formula)
    assert (model is not None) is (truth_table(formula, NAMES) != 0)
    if model is not None:
        assert holds(formula, dict.fromkeys(NAMES, False) | model)


def test_a_world_that_lacks_an_atom_is_told_which():
    with pytest.raises(UnknownAtom, match="no atom 'bird' in this world; did you mean 'brid'") as caught:
        holds(atom("bird") & a, {"brid": True, "a": True})
    assert (caught.value.name, caught.value.nearest) == ("bird", "brid")


def test_large_generated_formulae_cover_every_connective_evenly_and_seldom_say_nothing():
    rng = random.Random(0)
    listed = [random_formula(rng, 12, 60) for _ in range(1000)]
    kinds = Counter(part.kind for formula in listed for part in parts(formula))
    assert all(kinds[kind] > 500 for kind in (*BINARY, *CARDINALITIES, "not"))
    assert min(kinds["true"], kinds["false"]) > 0
    sizes = [fold(formula, lambda _, below: 1 + sum(below)) for formula in listed]
    assert 50 < max(sizes) <= 60
    assert max(len(atoms_of(formula)) for formula in listed) > 9
    trivial = sum(
        truth_table(formula, names) in (0, (1 << (1 << len(names))) - 1)
        for formula in listed
        for names in [atoms_of(formula)]
    )
    assert trivial < 200


class Alive:
    """A truth value that counts how many of its kind there are."""

    now = most = 0

    def __init__(self):
        Alive.now += 1
        Alive.most = max(Alive.most, Alive.now)

    def __del__(self):
        Alive.now -= 1

    def __xor__(self, other):
        return Alive()


def test_what_parts_of_a_deep_formula_are_worth_is_forgotten_when_it_is_used():
    """With an array for each of 20,000 equivalences over 20 atoms there were 20 GB of them."""
    found = atom("a0")
    for i in range(1, 2_000):
        found = iff(atom(f"a{i % 20}"), found)
    world = {f"a{i}": Alive() for i in range(20)}
    holds(found, world)
    assert Alive.most <= 24


# --- making formulae -----------------------------------------------------------------------------


@given(formulae(), formulae())
def test_operators_and_functions_mean_the_connective_they_name(left, right):
    x, y = truth_table(left, NAMES), truth_table(right, NAMES)
    every = (1 << 64) - 1
    for formula, table in (
        (left & right, x & y),
        (left | right, x | y),
        (left ^ right, x ^ y),
        (left >> right, (every ^ x) | y),
        (left << right, (every ^ y) | x),
        (implies(left, right), (every ^ x) | y),
        (iff(left, right), every ^ x ^ y),
        (~left, every ^ x),
    ):
        assert truth_table(formula, NAMES) == table


@given(st.lists(formulae(), max_size=5))
def test_conjunction_and_disjunction_join_all_their_parts(listed):
    everywhere, somewhere = (1 << 64) - 1, 0
    for formula in listed:
        everywhere &= truth_table(formula, NAMES)
        somewhere |= truth_table(formula, NAMES)
    assert truth_table(conjunction(iter(listed)), NAMES) == everywhere
    assert truth_table(disjunction(iter(listed)), NAMES) == somewhere


@given(st.sampled_from(CARDINALITIES), st.integers(0, 7), st.lists(st.sampled_from("abcdef"), max_size=7))
def test_a_part_that_stands_twice_in_a_cardinality_counts_twice(kind, bound, names):
    column = columns(NAMES)
    table = truth_table(cardinality(kind, bound, map(atom, names)), NAMES)
    for i in range(64):
        number = sum(column[name] >> i & 1 for name in names)
        expected = {"atleast": number >= bound, "atmost": number <= bound, "exactly": number == bound}[kind]
        assert bool(table >> i & 1) is expected


@pytest.mark.parametrize("bound", [-1, 1.0, True, "1", None])
def test_a_bound_is_a_whole_number_from_zero_up(bound):
    with pytest.raises(ValueError, match="atmost needs a whole number from 0 up"):
        atmost(bound, a, b)


def test_a_cardinality_has_one_of_three_names():
    with pytest.raises(ValueError, match="atleast, atmost or exactly, got 'about'"):
        cardinality("about", 1, [a])


def test_only_formulae_are_parts_of_formulae():
    for wrong in (
        lambda: a & "b",
        lambda: a | True,
        lambda: a ^ 1,
        lambda: a >> None,
        lambda: a << "b",
        lambda: conjunction([a, "b"]),
        lambda: disjunction("ab"),
        lambda: iff(a, True),
        lambda: implies("a", b),
        lambda: exactly(1, a, "b"),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_a_formula_never_changes_and_has_no_truth_value_of_its_own():
    with pytest.raises(TypeError, match=r"lbm\.atom"):
        Formula()
    with pytest.raises(AttributeError, match="never changes"):
        a.label = "b"
    with pytest.raises(AttributeError, match="never changes"):
        del a.label
    with pytest.raises(TypeError, match="combine with &"):
        bool(a & b)
    assert a.label == "a"


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "a\nb", "a\rb", "\t", "\x00", "\x7f", "\x85", "\ud800", "a\u2028b", "\u2029"]
)
def test_a_name_is_one_line_of_visible_text(name):
    with pytest.raises(ValueError, match="an atom's name"):
        atom(name)


@pytest.mark.parametrize("name", [None, 1, b"a", ("a",)])
def test_a_name_is_text(name):
    with pytest.raises(TypeError, match="an atom's name is text"):
        atom(name)


@given(
    st.sampled_from(["f", "less", "Ω"]),
    st.lists(st.sampled_from(["a", "X", "3", "007", "'a b'", "'it''s'", "','", "')'", "' '"]), min_size=1),
    st.data(),
)
def test_a_term_is_one_atom_however_it_is_spaced(predicate, arguments, data):
    blanks = st.sampled_from(["", " ", "   "])
    spaced = ",".join(data.draw(blanks) + argument + data.draw(blanks) for argument in arguments)
    plain = f"{predicate}({', '.join(arguments)})"
    assert atom(f"{predicate}({spaced})") is atom(plain)
    assert atom(plain).label == plain
    assert str(atom(plain)) == plain


@given(awkward_names)
def test_a_name_is_kept_as_it_is_unless_it_is_a_term(name):
    label = atom(name).label
    if label != name:
        assert re.fullmatch(r"\w+\(.*\)", name)
        assert label.replace(" ", "") == name.replace(" ", "")


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_reserved_word_is_a_name_only_in_quotes(word):
    assert str(atom(word)) == f"'{word}'"
    assert str(atom(f"{word}_")) == f"{word}_"
    assert str(atom(f"{word}(a)")) == f"'{word}(a)'"


# --- text ----------------------------------------------------------------------------------------


@given(formulae(NAMES, max_leaves=8))
@example((a >> (b >> c)) & ((a & b) & c) & iff(iff(a, b), c))
def test_no_pair_of_parentheses_in_the_text_is_idle(formula):
    text = str(formula)
    stack, pairs = [], []
    for i, sign in enumerate(text):
        if sign == "(":
            stack.append(i)
        elif sign == ")":
            pairs.append((stack.pop(), i))
    for left, right in pairs:
        if text[left - 1 : left].isalpha():
            continue  # of a cardinality, not of a group
        bare = text[:left] + " " + text[left + 1 : right] + " " + text[right + 1 :]
        with contextlib.suppress(ValueError):
            assert parse(bare) is not formula


@given(formulae(awkward_names))
def test_repr_is_the_text_in_angles_cut_short_if_it_is_long(formula):
    text = str(formula)
    if len(text) <= 1000:
        assert repr(formula) == f"<{text}>"
    else:
        assert repr(formula) == f"<{text[:1000]} ...>"
