"""Pictures of training show what they are given: every mark stands where its number is, and can be read."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import to_hex

from lbm.training.gradients.descent import Epoch
from lbm.training.learners.estimator import Confidence
from lbm.views.curves import GREY, LINE, RULES, calibration, confidence_changes, learning_curve
from lbm.views.plots import NEGATIVE, POSITIVE, save_picture

chances = st.floats(0, 1)
few = settings(max_examples=25, deadline=None)


def marks(ax, marker):
    """Return (x, y, colour) of every marker of this kind."""
    found = [line for line in ax.lines if line.get_marker() == marker]
    return [(x, y, to_hex(line.get_color()).upper()) for line in found for x, y in line.get_xydata().tolist()]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def boxes(ax):
    """Return where the labels of the rules are, in pixels."""
    ax.figure.canvas.draw()
    return [label.get_window_extent() for label in ax.get_yticklabels()]


# --- learning ------------------------------------------------------------------------------------


def test_a_learning_curve_marks_the_epoch_that_was_kept():
    history = [Epoch(i + 1, 1 / (i + 1), cost, 0.5 + i / 10, 0.0) for i, cost in enumerate([3.0, 1.0, 2.0])]
    ax = learning_curve(history)
    training, validation, kept = ax.lines
    assert training.get_xydata().tolist() == [[1, 1.0], [2, 0.5], [3, 1 / 3]]
    assert validation.get_ydata().tolist() == [3.0, 1.0, 2.0]
    assert kept.get_xydata().tolist() == [[2, 1.0]]
    assert kept.get_label() == "kept: epoch 2, accuracy 60.00%"


def test_a_run_that_nothing_judged_and_one_of_no_epochs_are_drawn_as_they_are():
    given_ax = learning_curve([]).figure.add_subplot()
    ax = learning_curve([Epoch(1, 1.0, None, None, 0.0)], given_ax)
    assert ax is given_ax
    assert len(ax.lines) == 1
    assert learning_curve([]).get_legend() is None


# --- confidences ---------------------------------------------------------------------------------


@few
@given(
    st.lists(
        st.tuples(st.floats(0.01, 1e4), st.floats(-10, 1e4), st.booleans()),
        min_size=1, max_size=2 * RULES, unique_by=lambda rule: abs(rule[1] - rule[0]),
    )
)  # fmt: skip
def test_those_that_moved_most_are_drawn_in_their_order_before_and_after(moves):
    rules = [Confidence(f"a{i} -> y", *move) for i, move in enumerate(moves)]
    least = sorted((abs(rule.final - rule.initial) for rule in rules), reverse=True)[:RULES][-1]
    shown = [rule for rule in rules if abs(rule.final - rule.initial) >= least]
    ax = confidence_changes(rules)
    assert [label.get_text() for label in ax.get_yticklabels()] == [rule.formula for rule in shown]
    assert [mark[:2] for mark in marks(ax, "|")] == [(rule.initial, i) for i, rule in enumerate(shown)]

    def colour(rule):
        return GREY if rule.fixed else NEGATIVE if rule.final < rule.initial else POSITIVE

    wanted = [(rule.final, i, colour(rule).upper()) for i, rule in enumerate(shown)]
    assert sorted(marks(ax, "o")) == sorted(wanted)
    assert (f"{RULES} of {len(rules)}" in ax.get_title()) == (len(rules) > RULES)
    left, right = ax.get_xlim()
    assert left <= min(0, *(mark[0] for mark in wanted))
    assert right > max(mark[0] for mark in wanted)


def test_the_legend_of_confidences_names_only_what_is_there():
    kept = Confidence("a -> y", 5.0, 5.0, True)
    assert legend(confidence_changes([kept])) == ["before", "kept as it was"]
    assert legend(confidence_changes([Confidence("b -> y", 5.0, 1.0, False)])) == ["before", "after, lower"]
    assert confidence_changes([]).get_legend() is None


def test_long_rules_take_two_lines_that_do_not_overlap_their_neighbours():
    pairs = [(i, j) for i in range(6) for j in range(i)]
    rules = [
        " & ".join(("" if k in pair else "~") + f"'a{k + 1} = 1'" for k in range(6)) + " -> member"
        for pair in pairs
    ]
    ax = confidence_changes([Confidence(rule, 5.0, 4.0, False) for rule in rules])
    texts = [label.get_text() for label in ax.get_yticklabels()]
    assert [text.replace("\n", " ") for text in texts] == rules  # whole, so that they can be told apart
    assert all(len(line) <= LINE for text in texts for line in text.split("\n"))
    found = boxes(ax)
    assert all(above.y0 >= below.y1 - 1 for above, below in pairwise(found))


def test_a_rule_too_long_for_two_lines_is_cut_and_one_without_a_place_to_break_stays_on_one():
    texts = [" & ".join(f"atom{i}" for i in range(60)) + " -> y", "'" + 80 * "x" + "'"]
    ax = confidence_changes([Confidence(text, 5.0, 4.0, False) for text in texts])
    cut, whole = (label.get_text() for label in ax.get_yticklabels())
    assert (cut.count("\n"), "…" in cut, cut.endswith("-> y")) == (1, True, True)
    assert whole == texts[1]


# --- calibration ---------------------------------------------------------------------------------


@few
@given(st.lists(st.tuples(chances, st.booleans()), max_size=40), st.integers(1, 12))
def test_calibration_shows_how_often_what_was_predicted_happened(events, bins):
    ax = calibration([p for p, _ in events], [happened for _, happened in events], bins=bins)
    ranges = [[] for _ in range(bins)]
    for p, happened in events:
        ranges[min(int(p * bins), bins - 1)].append((p, happened))
    wanted = [np.mean(part, axis=0) for part in ranges if part]
    assert [mark[:2] for mark in marks(ax, "o")] == [pytest.approx(tuple(point)) for point in wanted]
    assert [text.get_text() for text in ax.texts] == [str(len(part)) for part in ranges if part]


def test_calibration_bars_hold_every_share_that_is_within_two_standard_errors_of_its_own():
    """The ends p of Wilson's interval solve |share - p| = z sqrt(p (1 - p) / n), z = 1.96."""
    events = [0] * 3 + [1] * 7
    (bar,) = calibration([0.55] * 10, events).collections
    ((_, low), (_, high)) = bar.get_segments()[0]
    for end in (low, high):
        assert abs(0.7 - end) == pytest.approx(1.96 * (end * (1 - end) / 10) ** 0.5, rel=1e-4)
    (certain,) = calibration([0.0], [0]).collections
    assert certain.get_segments()[0].tolist() == [[0, 0], [0, pytest.approx(0.7935, abs=1e-3)]]


def test_counts_stand_clear_of_the_axis_below():
    ax = calibration([0.01, 0.5, 0.99], [0, 0, 1])
    ax.figure.canvas.draw()
    floor = ax.get_window_extent().y0
    assert all(text.get_window_extent().y0 >= floor for text in ax.texts)


def test_events_that_are_no_events_are_refused():
    with pytest.raises(ValueError, match="as many outcomes as probabilities"):
        calibration([0.5], [1, 0])
    for p, happened in (([1.5], [1]), ([float("nan")], [1]), ([0.5], [2])):
        with pytest.raises(ValueError, match="expected probabilities from 0 to 1 and outcomes 0 and 1"):
            calibration(p, happened)


def test_the_same_figures_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        save_picture(lambda: calibration([0.2, 0.8], [0, 1]), tmp_path / f"{name}.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
