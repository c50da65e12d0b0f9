"""The picture shows every unit, every weight and no more; the same machine gives the same bytes."""

import random
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from scipy.sparse import csc_array

import lbm
from lbm.errors import FileError
from lbm.knowledge.theory import Theory
from lbm.logic.cube import Cube
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from lbm.views.plots import NEGATIVE, PICTURED, POSITIVE, cube_label, draw, edge_widths, network, short_name
from lbm.views.portrait import portrait
from tests.strategies import awkward_names

NIXON = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"
XOR = "((x & ~y) | (~x & y)) <-> z"


def machine_of(text, **options):
    return translate(Theory.parse(text), **options)


def test_a_theory_is_drawn_as_its_machine_and_what_has_none_is_refused(tmp_path):
    theory = Theory.parse(NIXON)
    for name, thing in (("theory", theory), ("machine", translate(theory))):
        lbm.draw(thing, tmp_path / f"{name}.svg")
    assert (tmp_path / "theory.svg").read_bytes() == (tmp_path / "machine.svg").read_bytes()
    for thing in (NIXON, 3, None):
        with pytest.raises(TypeError, match="expected a Machine, a Theory or a fitted learner, got"):
            lbm.draw(thing, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()


def test_a_learner_without_classes_is_drawn_as_its_machine(tmp_path):
    pytest.importorskip("torch")
    model = lbm.LogicalRBM(knowledge="a -> b", hidden=2, max_epochs=1, random_state=0, names=["a", "b"])
    model.fit(np.array([[0, 1], [1, 1], [0, 0]] * 4), None)
    lbm.draw(model, tmp_path / "model.svg")
    lbm.draw(model.parameters().machine, tmp_path / "machine.svg")
    assert (tmp_path / "model.svg").read_bytes() == (tmp_path / "machine.svg").read_bytes()


def classifier(**options):
    """Return a classifier of many columns with a soft rule and one without a weight."""
    pytest.importorskip("torch")
    random_rows = np.random.default_rng(0).integers(0, 2, (120, 30))
    knowledge = "c0 & c1 -> y\n2: c2 -> ~y"
    names = [f"c{i}" for i in range(30)]
    options = {"hidden": 40, "max_epochs": 8, "random_state": 0, "names": names} | options
    return lbm.LBMClassifier(knowledge=knowledge, **options).fit(
        random_rows, random_rows[:, 0] & random_rows[:, 1]
    )


def picture_texts(model):
    figure = Figure()
    portrait(model, figure)
    return [text for ax in figure.axes for text in [*texts(ax), ax.get_title(loc="left")]]


def test_a_classifier_is_drawn_as_its_rules_and_its_strongest_units(tmp_path):
    model = classifier(in_turn=False)  # free units learn from the first step on, so that there are some
    said = picture_texts(model)
    for one in model.confidences_:
        name = one.formula.removeprefix("2: ")
        assert f"{name}  ({one.initial:.3g} → {one.final:.3g})" in said
    heaviest = max(model.context().extraction.rules, key=lambda rule: rule.weight)
    assert any(text.endswith(f"({heaviest.weight:.3g})") for text in said)
    assert "the strongest of 40 units that are no rules, by what switches them on" in said
    assert sum(", 26 more" in text for text in said) == 6
    assert len(said) < 60  # of 1,240 weights
    lbm.draw(model, tmp_path / "m.svg")
    lbm.draw(model, tmp_path / "again.svg")
    assert (tmp_path / "m.svg").read_bytes() == (tmp_path / "again.svg").read_bytes()


@pytest.mark.parametrize("hard", [False, True])
def test_only_a_rule_that_stays_as_it_is_is_called_hard(hard):
    """A rule without a weight begins with a confidence that is learned, unless hard=True."""
    model = classifier(hard=hard, hidden=3, names=[f"c{i}" for i in range(30)])
    said = " ".join(picture_texts(model))
    assert ("hard" in said) == hard
    machine = model.parameters().machine
    kinds = {kind for kind in map(machine.units.statements, range(machine.hidden)) for kind in kind}
    assert any(statement.weight is None for statement in kinds) == hard
    legend = " ".join(text.get_text() for text in network(machine).get_legend().get_texts())
    assert ("hard formula" in legend) == hard
    assert "soft formula" in legend


def random_machine(hidden):
    """Return a machine with exactly so many hidden units, over 24 atoms with long names."""
    rng = random.Random(0)
    names = [f"symptom_{i}" for i in range(24)]
    lines = []
    while True:
        body, head = rng.sample(names, 2)
        more = [*lines, f"{rng.choice([1, 10, 100])}: {body} -> {head}"]
        size = machine_of("\n".join(more)).hidden
        if size <= hidden:
            lines = more
        if size == hidden:
            return machine_of("\n".join(lines))


def texts(ax):
    return [text.get_text() for text in ax.texts]


def edges(ax):
    """Return (colour, width, x of the visible end, x of the hidden end) of every edge."""
    found = []
    for lines in ax.collections:
        if isinstance(lines, LineCollection):
            colour = lines.get_colors()[0][:3]
            for segment, width in zip(lines.get_segments(), lines.get_linewidths(), strict=True):
                found.append((tuple(colour), width, segment[0][0], segment[1][0]))
    return found


def overlapping(ax):
    """Return pairs of labels whose boxes meet on the page."""
    figure = ax.get_figure()
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in ax.texts]
    legend = ax.get_legend()
    if legend is not None:
        boxes.append(("legend", legend.get_window_extent()))
    return [(a, b) for i, (a, one) in enumerate(boxes) for b, other in boxes[:i] if one.overlaps(other)]


# --- the network ---------------------------------------------------------------------------------


def test_every_unit_is_labelled_by_its_name_or_its_cube_and_weight():
    shown = texts(network(machine_of(NIXON)))
    assert shown[:4] == ["n", "r", "q", "p"]
    assert sorted(shown[4:]) == [
        "h1: n ∧ r\nw = 1000",
        "h2: ¬n\nw = 2000",
        "h3: n ∧ q\nw = 1000",
        "h4: r ∧ ¬p\nw = 10",
        "h5: ¬r\nw = 10",
        "h6: q ∧ p\nw = 10",
        "h7: ¬q\nw = 10",
    ]


def test_a_weight_that_all_units_share_stands_in_the_legend_only():
    ax = network(machine_of(XOR))
    assert not any("w = " in text for text in texts(ax))
    assert "every |weight| = 1" in [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("text", [NIXON, XOR, "-3: a & b\n2: c"])
def test_every_weight_is_an_edge_of_its_sign_between_its_units(text):
    machine = machine_of(text)
    ax = network(machine)
    place = {label.get_text().split(":")[0]: label.xy[0] for label in ax.texts}
    wanted = set()
    coo = machine.weights.tocoo()
    for i, j, weight in zip(coo.row, coo.col, coo.data, strict=True):
        colour = POSITIVE if weight > 0 else NEGATIVE
        rgb = tuple(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
        wanted.add((rgb, place[machine.atoms[i]], place[f"h{j + 1}"]))
    assert {(colour, visible, hidden) for colour, _, visible, hidden in edges(ax)} == wanted
    assert len(edges(ax)) == machine.weights.nnz


def test_a_heavier_weight_is_a_wider_edge():
    widths = sorted({round(width, 6) for _, width, _, _ in edges(network(machine_of(NIXON)))})
    assert len(widths) == 3  # 10, 1000 and 2000


@given(st.lists(st.floats(1e-9, 1e9) | st.floats(-1e9, -1e-9), min_size=1, max_size=40))
def test_widths_grow_with_the_size_of_weights_and_can_be_seen_and_told_apart_from_the_units(weights):
    weights = np.array(weights)
    widths = edge_widths(weights)
    assert (widths >= 0.28 - 1e-9).all()
    assert (widths <= 4.0 + 1e-9).all()
    order = np.argsort(np.abs(weights), kind="stable")
    assert (np.diff(widths[order]) >= -1e-9).all()


@pytest.mark.parametrize("machine", [machine_of(NIXON), machine_of(XOR), random_machine(PICTURED)], ids=repr)
def test_no_label_covers_another(machine):
    assert overlapping(network(machine)) == []


def test_sixty_units_are_still_drawn_one_by_one():
    ax = network(random_machine(PICTURED))
    assert sum(text.startswith("h") for text in texts(ax)) == 60
    width, height = ax.get_figure().get_size_inches()
    assert width / 60 >= 0.25  # an inch holds four labels that stand upright
    assert height < width


def test_definitional_atoms_are_marked_and_explained():
    machine = machine_of("a ^ b ^ c ^ d", method="definitions")
    assert machine.definitions
    said = [text.get_text() for text in network(machine).get_legend().get_texts()]
    assert "visible unit: a definitional atom" in said
    assert "hidden unit: a cube of a definition" in said


def test_the_legend_names_only_what_is_there():
    said = [text.get_text() for text in network(machine_of("~a")).get_legend().get_texts()]
    assert said == [
        "visible unit: an atom",
        "hidden unit: a cube of a hard formula",
        "weight < 0: it wants the atom false",
        "every |weight| = 1",
    ]


def test_visible_biases_are_shown_where_there_are_any():
    assert "y\nb = -0.5" in texts(network(machine_of(XOR, encoding="penalty")))


def test_a_machine_without_theory_or_unit_weights_is_drawn():
    weights = csc_array(np.array([[2.0, 0.0], [-1.0, 3.0]]))
    machine = Machine(("a", "b"), weights, np.zeros(2), np.zeros(2))
    shown = texts(network(machine))
    assert {"h1: a ∧ ¬b\nw = 2", "h2: b\nw = 3"} <= set(shown)


def test_units_without_any_weight_are_drawn():
    assert texts(network(machine_of("atoms a\ntrue"))) == ["a", "h1: true"]
    assert texts(network(translate(Theory(atoms=["a"])))) == ["a"]


def test_it_draws_where_it_is_told_to_and_returns_that():
    ax = Figure(figsize=(4, 3)).add_subplot()
    assert network(machine_of(NIXON), ax, legend=False) is ax
    assert ax.get_legend() is None
    rotations = [text.get_rotation() for text in ax.texts]
    assert rotations == [0] * 4 + [90] * 7  # four inches are enough for four flat labels, not for seven


@pytest.mark.parametrize("text", [NIXON, XOR])
def test_labels_stay_inside_the_axes_they_were_given(text):
    figure = Figure(figsize=(9, 4))
    for ax in figure.subplots(1, 2):
        network(machine_of(text), ax, legend=False)
        figure.canvas.draw()
        box = ax.get_window_extent().expanded(1.02, 1.02)
        for label in ax.texts:
            extent = label.get_window_extent()
            assert box.y0 <= extent.y0 <= extent.y1 <= box.y1


# --- labels --------------------------------------------------------------------------------------


@given(st.lists(st.tuples(awkward_names, st.sampled_from([1, -1])), max_size=30))
def test_a_cube_label_is_short_and_says_how_many_literals_it_leaves_out(literals):
    label = cube_label(Cube(tuple(literals)))
    assert len(label) <= 50
    if len(literals) > 30:
        assert label.endswith("more")


def test_a_cube_label_counts_what_it_leaves_out():
    cube = Cube(tuple((f"a_rather_long_name_{i}", -1) for i in range(7)))
    assert cube_label(cube) == "¬a_rather_lo…ame_0 ∧ 6 more"
    assert cube_label(Cube(())) == "true"


def test_a_long_name_keeps_both_its_ends():
    assert short_name("temperature_of_room_12").endswith("om_12")
    assert len(short_name("x" * 1000)) == 17


# --- the summary ---------------------------------------------------------------------------------


def test_past_sixty_units_histograms_count_every_unit():
    machine = random_machine(PICTURED + 1)
    ax = network(machine)
    assert (
        ax.get_title()
        == f"{len(machine.atoms)} visible units, 61 hidden units, {machine.weights.nnz} weights, ε = 0.5"
    )
    sizes, weights = ax.child_axes
    assert sizes.get_xlabel() == "literals in a cube"
    assert weights.get_xlabel() == "weight of a hidden unit"
    assert sum(bar.get_height() for bar in sizes.patches) == 61
    assert sum(bar.get_height() for bar in weights.patches) == 61


def test_many_atoms_alone_make_a_summary_too():
    machine = machine_of("atoms " + ", ".join(f"x{i}" for i in range(61)) + "\nx1")
    assert len(network(machine).child_axes) == 2


@pytest.mark.parametrize(
    ("weights", "scale"), [([1.5**i for i in range(70)], "log"), ([100 + i for i in range(70)], "linear")]
)
def test_weights_of_many_values_are_counted_in_ranges(weights, scale):
    machine = machine_of("\n".join(f"{weight:.6f}: x{i}" for i, weight in enumerate(weights)))
    ax = network(machine).child_axes[1]
    assert ax.get_xscale() == scale
    assert sum(bar.get_height() for bar in ax.patches) == 70


def test_rare_sizes_stay_visible_beside_frequent_ones():
    lines = [f"x{i}" for i in range(200)] + ["x1 | x2"]
    assert network(machine_of("\n".join(lines), merge=False)).child_axes[0].get_yscale() == "log"


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_machine_gives_the_same_bytes(tmp_path, kind, magic):
    machine = machine_of(NIXON)
    for name in ("one", "two"):
        draw(machine, tmp_path / f"{name}.{kind}")
    one, two = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert one.startswith(magic)


def test_an_svg_is_well_formed(tmp_path):
    draw(machine_of(XOR), tmp_path / "xor.SVG")
    assert ET.parse(tmp_path / "xor.SVG").getroot().tag.endswith("svg")


@settings(max_examples=15)
@given(st.lists(awkward_names, min_size=1, max_size=4, unique=True))
def test_any_name_can_be_drawn(tmp_path_factory, names):
    """Names like $x^2$ are text, not mathematics; what the font lacks is told and not fatal."""
    theory = Theory(atoms=names)
    machine = translate(Theory([" | ".join(_quoted(name) for name in theory.atoms)]))
    told = []
    draw(machine, tmp_path_factory.mktemp("names") / "a.svg", warn=told.append)
    assert len(told) <= 1


def _quoted(name):
    return "'" + name.replace("'", "''") + "'"


def test_dollar_signs_are_no_mathematics(tmp_path):
    draw(machine_of(r"'$\frac{1}{' -> '$x^2$'"), tmp_path / "a.png")


def test_signs_the_font_lacks_are_told_once(tmp_path):
    told = []
    draw(machine_of("变量 -> 变化"), tmp_path / "a.png", warn=told.append)
    [line] = told
    assert "boxes" in line


@pytest.mark.parametrize("name", ["a.gif", "a", "a.svg.txt"])
def test_another_ending_is_refused_before_anything_is_drawn(tmp_path, name):
    with pytest.raises(FileError, match=r"\.svg, \.png or \.pdf"):
        draw(machine_of("a"), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_picture_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(FileError, match="cannot write"):
        draw(machine_of("a"), tmp_path / "a.svg")
    with pytest.raises(FileError, match="cannot write"):
        draw(machine_of("a"), tmp_path / "missing" / "a.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]
