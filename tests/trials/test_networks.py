"""The part about networks: what they learn from, that nothing they say breaks a theory, and what is shown."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import FileError
from lbm.trials.networks.published import PUBLISHED, SUM
from lbm.trials.networks.tasks import TASKS, task_named
from lbm.trials.parts import neural
from lbm.trials.storage import check_row, read_csv, write_csv

torch = pytest.importorskip("torch")

from lbm.trials.networks import (  # noqa: E402 - they need torch
    boards,
    concepts,
    few_labels,
    images,
    paths,
    rankings,
    requirements,
    sums,
    trees,
)


def row(task, value, *, seed=0, method="layer", measure=SUM):
    key = {"task": task, "recipe": task_named(task).recipe, "seed": seed}
    return {
        **key,
        "method": method,
        "measure": measure,
        "value": value,
        "seconds": 1.0,
        "processor_seconds": 1.0,
    }


# --- images ----------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.integers(1, 30), st.none() | st.integers(0, 2**20))
def test_a_grouping_uses_every_image_once_but_for_fewer_than_a_group(count, size, seed):
    groups = images.grouped(count, size, seed=seed)
    assert groups.shape == (count // size, size)
    assert len(np.unique(groups)) == groups.size
    assert set(groups.ravel().tolist()) <= set(range(count))
    assert count - groups.size < size


def test_groupings_of_different_seeds_differ_and_that_of_the_file_keeps_its_order():
    first, second = (images.grouped(1000, 2, seed=seed) for seed in (0, 1))
    assert (first != second).mean() > 0.9
    assert images.grouped(1000, 2, seed=None).ravel().tolist() == list(range(1000))


def idx(shape, kind=8, more=b""):
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    return bytes((0, 0, kind, len(shape))) + sizes + bytes(range(int(np.prod(shape)))) + more


def test_a_file_in_the_idx_format_is_read_as_its_bytes_packed_or_not(tmp_path):
    for name, pack in (("plain", bytes), ("packed.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(idx((2, 3))))
        assert images.read_idx(tmp_path / name, (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    "data", [b"", idx((2, 3))[:-1], idx((2, 3), more=b"x"), idx((3, 2)), idx((6,)), idx((2, 3), kind=13)]
)
def test_a_file_that_is_not_what_it_should_be_is_one_line(tmp_path, data):
    path = tmp_path / "images"
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"^cannot read .*images: expected bytes of shape \(2, 3\)") as caught:
        images.read_idx(path, (2, 3))
    assert "\n" not in str(caught.value)


def test_without_data_a_task_that_needs_some_says_what_to_set(monkeypatch, tmp_path):
    images.mnist.cache_clear()
    monkeypatch.delenv("LBM_DATA", raising=False)
    with pytest.raises(FileError, match="cannot read MNIST: set LBM_DATA"):
        images.mnist()
    monkeypatch.setenv("LBM_DATA", str(tmp_path))
    with pytest.raises(FileError, match=r"cannot read .*train-images-idx3-ubyte\.gz"):
        images.mnist()


def test_no_small_digit_is_both_learned_from_and_judged_by():
    found = images.small_digits()
    assert len(found.train) + len(found.test) == 1796
    both = torch.cat([found.train, found.test])
    assert len(torch.unique(both, dim=0)) == len(both)


# --- addition --------------------------------------------------------------------------------------


@given(st.integers(1, 20), st.integers(0, 2**20))
def test_digits_of_a_sum_are_those_of_the_numbers_added(digits, seed):
    values = np.random.default_rng(seed).integers(0, 10, (5, 2 * digits))
    for line, said in zip(values.tolist(), sums.sums(values).tolist(), strict=True):
        one, other = (int("".join(map(str, part))) for part in (line[:digits], line[digits:]))
        assert int("".join(map(str, reversed(said)))) == one + other


@pytest.mark.parametrize("digits", [1, 2, 5])
def test_what_the_layer_predicts_is_the_sum_of_the_likeliest_digits_and_never_breaks_addition(digits):
    layer = sums.adding(digits)
    generator = torch.Generator().manual_seed(digits)
    logits = 3 * torch.randn(40, 10, generator=generator)
    labels = logits.argmax(dim=1).numpy()
    labels[::7] = (labels[::7] + 1) % 10
    groups = images.grouped(40, 2 * digits, seed=0)
    seen = sums.sums(logits.argmax(dim=1).numpy()[groups])
    right = (seen == sums.sums(labels[groups])).all(axis=1).sum()
    assert 0 < right < len(groups)
    assert sums.judged(layer, logits, labels, groups) == (right, 0)


def test_the_layer_knows_the_sum_that_training_tells_it():
    layer = sums.adding(2)
    sure = torch.full((1, 40), -torch.inf)
    sure[0, [9, 10 + 5, 20 + 3, 30 + 7]] = 0.0  # 95 + 37 = 132
    told = torch.from_numpy(sums.sums(np.array([[9, 5, 3, 7]])))
    assert told.tolist() == [[2, 3, 1]]
    assert layer(sure).log_prob(told).item() == pytest.approx(0, abs=1e-9)


# --- paths -----------------------------------------------------------------------------------------


def walked(edges, start, end):
    """Return whether a simple path of these edges, all of them, leads from start to end: by search."""

    def further(node, left, seen):
        if node == end:
            return not left
        return any(
            further(sum(paths.EDGES[edge]) - node, left - {edge}, seen | {node})
            for edge in left
            if node in paths.EDGES[edge] and sum(paths.EDGES[edge]) - node not in seen
        )

    return further(start, frozenset(edges), frozenset())


def simple_path(rng):
    """Return the edges and ends of a random simple path."""
    node, seen, edges = int(rng.integers(16)), [], []
    for _ in range(int(rng.integers(1, 16))):
        seen.append(node)
        steps = [edge for edge, pair in enumerate(paths.EDGES) if node in pair]
        steps = [edge for edge in steps if sum(paths.EDGES[edge]) - node not in seen]
        if not steps:
            break
        edges.append(int(rng.choice(steps)))
        node = sum(paths.EDGES[edges[-1]]) - node
    return edges, seen[0], node


@given(st.integers(0, 2**20))
def test_a_path_is_one_whoever_checks_it_and_with_another_edge_it_is_none(seed):
    rng = np.random.default_rng(seed)
    edges, start, end = simple_path(rng)
    ends = np.isin(np.arange(16), [start, end])
    assert paths.is_path(np.isin(np.arange(24), edges), ends)
    changed = {*edges} ^ {*rng.integers(24, size=int(rng.integers(1, 4))).tolist()}
    said = paths.is_path(np.isin(np.arange(24), list(changed)), ends)
    assert said == walked(changed, *np.flatnonzero(ends).tolist())


def test_the_grid_has_each_edge_between_neighbours_once():
    assert len(set(paths.EDGES)) == 24
    assert {abs(one - other) for one, other in paths.EDGES} == {1, 4}


@pytest.mark.parametrize("line", ["1-2,3-4", "1-2,3-x,5", "1-2,3-44,5", "1-2,3-4,-"])
def test_a_line_that_is_no_grid_is_named(line):
    with pytest.raises(FileError, match=r"cannot read made: .* in line 2"):
        paths.read_grids(f"1-2,3-4,5\n{line}", "made")


def test_every_listed_path_of_the_data_is_one_and_uses_no_removed_edge(dataset):
    text = (dataset("structured") / "grid_paths.data").read_text()
    grids = paths.read_grids(text, "grid paths")
    assert len(grids.first) == 1610
    for there, ends, first, listed in zip(grids.there, grids.ends, grids.first, grids.listed, strict=True):
        assert frozenset(np.flatnonzero(first).tolist()) in listed
        for path in listed:
            line = np.isin(np.arange(24), list(path))
            assert paths.is_path(line, ends)
            assert not (line & ~there).any()


# --- rankings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pairs", [False, True])
def test_models_of_the_theory_of_rankings_are_the_rankings(pairs):
    import lbm

    found = lbm.models(lbm.Theory.parse(rankings.theory(pairs=pairs)))
    assert len(found) == 24
    for world in found:
        ranks = [[world[f"at({kind}, {spot})"] for spot in range(4)].index(True) for kind in rankings.ASKED]
        assert sorted(ranks) == [0, 1, 2, 3]
        if pairs:
            place = dict(zip(rankings.ASKED, ranks, strict=True))
            assert world["before(4, 6)"] == (place[4] < place[6])
            assert world["before(9, 10)"] == (place[9] < place[10])


def test_places_are_those_of_some_kinds_among_themselves():
    ranking = np.array([[10, 3, 9, 4, 5, 1, 6, 2, 8, 7]])
    assert rankings.places(ranking, rankings.ASKED).tolist() == [[2, 3, 1, 0]]  # of 4, 6, 9 and 10
    assert rankings.places(ranking, rankings.GIVEN).tolist() == [[2, 3, 0, 1, 5, 4]]


def test_rankings_are_read_as_often_as_they_count_and_a_line_that_is_none_is_named():
    text = "10\n1,one\n5,5,2\n2,1,2,3,4,5,6,7,8,9,10\n"
    assert rankings.read_rankings(text, "made").shape == (2, 10)
    with pytest.raises(FileError, match="cannot read made: expected ten kinds by rank in line 5"):
        rankings.read_rankings(text + "1,1,1,3,4,5,6,7,8,9,10", "made")


# --- hierarchies -----------------------------------------------------------------------------------

ARFF = """% made
@RELATION made
@ATTRIBUTE x numeric
@ATTRIBUTE y numeric
@ATTRIBUTE class hierarchical 2/1,1,2,2/1/3
@DATA
1,?,2/1/3
-3,0.5,1@2
"""


def test_labels_of_a_hierarchy_are_closed_upwards():
    found = trees.read_arff(ARFF, "made")
    assert found.names == ("1", "2", "2/1", "2/1/3")
    assert found.parents.tolist() == [-1, -1, 1, 2]
    assert found.labels.tolist() == [[False, True, True, True], [True, True, False, False]]
    assert np.isnan(found.cells[0, 1])
    assert trees.broken(found.labels, found.parents) == 0
    assert trees.broken(found.labels ^ np.array([False, True, False, False]), found.parents) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [("@DATA", ""), ("hierarchical", "numeric"), ("1@2", "7"), ("0.5,", ""), ("-3", "three")],
)
def test_a_file_of_a_hierarchy_that_does_not_fit_is_one_line(old, new):
    with pytest.raises(FileError, match=r"^cannot read made: expected") as caught:
        trees.read_arff(ARFF.replace(old, new), "made")
    assert "\n" not in str(caught.value)


@given(st.integers(0, 2**20))
def test_the_max_rule_keeps_the_hierarchy_and_raises_no_chance_past_those_below(seed):
    rng = np.random.default_rng(seed)
    parents = np.array([int(rng.integers(-1, child)) if child else -1 for child in range(8)])
    chances = rng.random((5, 8))
    most = trees.raised(chances, parents)
    assert trees.broken(most > 0.5, parents) == 0
    for label in range(8):
        below = {label}
        for child in range(label + 1, 8):
            if parents[child] in below:
                below.add(child)
        assert (most[:, label] == chances[:, sorted(below)].max(axis=1)).all()


# --- digits behind sums, boards, requirements ---------------------------------------------------------


@given(st.integers(0, 2**20), st.sampled_from(sorted(concepts.PAIRS)))
def test_only_pairs_that_occur_are_drawn_and_each_as_often(seed, name):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(10), 5))
    pairs = concepts.PAIRS[name]
    drawn = concepts.paired(labels, pairs, 3 * len(pairs), seed)
    assert sorted(map(tuple, labels[drawn].tolist())) == sorted(pairs * 3)


def test_calibration_error_is_nothing_where_confidence_is_how_often_one_is_right():
    right = np.array([True] * 75 + [False] * 25)
    assert concepts.calibration_error(np.full(100, 0.75), right) == 0
    assert concepts.calibration_error(np.ones(100), right) == 0.25
    assert concepts.calibration_error(np.array([0.0, 1.0]), np.array([False, True])) == 0


def test_models_of_the_theory_of_boards_are_the_solved_boards():
    import lbm

    assert lbm.count(lbm.Theory.parse(boards.theory())) == len(boards.solved_boards()) == 288
    assert len(np.unique(boards.solved_boards(), axis=0)) == 288
    for board in boards.solved_boards()[::17]:
        assert boards.is_solved(board)
        changed = board.copy()
        changed[5] = changed[5] % 4 + 1
        assert not boards.is_solved(changed)


@given(st.integers(0, 2**20))
def test_cells_of_boards_have_images_of_their_digits(seed):
    labels = np.random.default_rng(seed).integers(0, 6, 200)
    labels[:4] = 1, 2, 3, 4
    drawn, numbers = boards.drawn(labels, 6, seed)
    assert (labels[numbers] == drawn).all()
    assert all(boards.is_solved(board) for board in drawn)


def test_labelled_images_are_as_many_of_each_digit():
    labels = np.repeat(np.arange(10), 20)
    chosen = few_labels.labelled(labels, 3, 0)
    assert np.bincount(labels[chosen]).tolist() == [3] * 10
    assert len(set(chosen.tolist())) == 30
    assert chosen.tolist() != few_labels.labelled(labels, 3, 1).tolist()


def test_requirements_that_are_none_are_one_line():
    assert requirements.read_requirements("c one\np cnf 41 2\n1 -2 0\n41 0\n", "made") == [[1, -2], [41]]
    for text in ("1 2", "1 0 2 0", "42 0", "one 0"):
        with pytest.raises(FileError, match=r"^cannot read made: expected requirements over 41 labels"):
            requirements.read_requirements(text, "made")


@pytest.mark.slow
def test_repaired_label_sets_keep_all_requirements(dataset, monkeypatch):
    dataset("structured")
    monkeypatch.setattr(requirements, "SETS", 50)
    found = {(each.method, each.measure): each.value for each in requirements.measure(0, flipped=0.05)}
    assert found["layer", "violations"] == found["layer, fewest changes", "violations"] == 0
    assert found["noisy labels", "violations"] > 0
    assert found["layer", "label wrong, %"] < found["noisy labels", "label wrong, %"]


# --- every task, with the least training --------------------------------------------------------------


def made_hierarchy(folder):
    """Write a set of a hierarchy whose labels follow from its numbers, under the names of ``trees``."""
    rng = np.random.default_rng(0)
    labels = ["1", "1/2", "1/2/3", "4", "4/5"]
    head = [
        "@attribute x numeric",
        "@attribute y numeric",
        f"@attribute class hierarchical {','.join(labels)}",
    ]
    (folder / "hierarchies").mkdir()
    for file, rows in (("made_train", 60), ("made_test", 30)):
        cells = rng.normal(size=(rows, 2)).round(3).tolist()
        lines = [f"{x},{y},{'1/2/3' if x > 0 else '1/2'}@{'4/5' if y > 0 else '4'}" for x, y in cells]
        packed = gzip.compress("\n".join([*head, "@data", *lines]).encode())
        (folder / "hierarchies" / f"{file}.arff.gz").write_bytes(packed)


def by_measure(scores):
    return {(each.method, each.measure): each.value for each in scores}


def test_a_layer_on_a_hierarchy_never_breaks_it_and_the_max_rule_neither(tmp_path, monkeypatch):
    made_hierarchy(tmp_path)
    monkeypatch.setenv("LBM_DATA", str(tmp_path))
    monkeypatch.setattr(trees, "SETS", {"made": (("made_train",), "made_test")})
    recipe = trees.TreeRecipe(hidden=16, epochs=15, batch=8, rate=1e-2, dropout=0.0, average=0.0)
    for test in (True, False):
        found = by_measure(trees.measure(0, name="made", test=test, recipe=recipe))
        for method in ("layer", "max rule", "max rule in training"):
            assert found[method, "violations"] == 0
            assert found[method, "exact match, %"] > 60
            assert 0.8 < found[method, "AU(PRC)"] <= 1


def test_a_layer_on_rankings_predicts_rankings(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [",".join(map(str, [1, *rng.permutation(10) + 1])) for _ in range(100)]
    (tmp_path / "structured").mkdir()
    (tmp_path / "structured" / "sushi.soc").write_text("\n".join(lines))
    monkeypatch.setenv("LBM_DATA", str(tmp_path))
    recipe = rankings.RankingRecipe(epochs=1)
    found = by_measure(rankings.measure(0, recipe=recipe))
    assert {value for (method, what), value in found.items() if method[:5] == "layer" and what[0] == "v"} == {
        0
    }
    assert found["plain outputs", "violations"] > 0


def test_a_layer_on_grids_predicts_paths_and_uses_no_removed_edge_that_it_was_told_of(dataset):
    dataset("structured")
    found = by_measure(paths.measure(0, recipe=paths.PathRecipe(epochs=1, batch=128)))
    assert found["layer", "violations"] == found["layer, removed edges given", "violations"] == 0
    assert found["layer", "paths, %"] == 100
    assert found["layer, removed edges given", "removed edge used, %"] == 0
    assert (
        found["layer, removed edges given", "any listed path, %"]
        > found["plain outputs", "any listed path, %"]
    )


def test_a_layer_on_boards_predicts_solved_boards():
    found = by_measure(boards.measure(0, small=True, recipe=boards.BoardRecipe(30, 2, epochs=2, batch=8)))
    assert found["layer", "violations"] == found["labels alone, best board", "violations"] == 0
    assert found["labels alone, cell by cell", "violations"] > 0


def test_what_few_labels_and_sums_of_few_pairs_teach_is_one_digit_an_image_and_their_sum():
    few = few_labels.measure(0, small=True, recipe=few_labels.FewLabelsRecipe(steps=30, batch=64))
    half = concepts.measure(0, name="Half", small=True, recipe=concepts.ConceptRecipe(100, 50, epochs=1))
    assert by_measure(few)["layer", "violations"] == by_measure(half)["layer", "violations"] == 0


# --- what is shown ---------------------------------------------------------------------------------


def test_the_best_published_sums_are_those_that_goals_are_set_by():
    best = [max(one.value for one in PUBLISHED[f"MNIST, N = {digits}"]) for digits in (1, 2, 4, 15)]
    assert best == [97.9, 96.4, 93.5, 79.0]


def test_published_figures_are_shown_as_published_and_ours_as_ours(tmp_path):
    rows = [row("MNIST, N = 4", value, seed=seed) for seed, value in enumerate((90.0, 92.0))]
    rows += [row("MNIST, N = 4", 0.0, seed=seed, measure="violations") for seed in range(2)]
    for each in rows:
        check_row(neural, each)
    write_csv(tmp_path / "neural.csv", neural, rows)
    assert read_csv(tmp_path / "neural.csv", neural) == rows
    said = neural.section(rows)
    (table,) = said.tables
    lines = {line[1]: line for line in table.rows}
    assert lines["lbm: layer"][2] == "91.00 ± 1.41"
    assert lines["published: DeepSoftLog"][2] == "93.5 ± 0.6"
    assert {name.partition(":")[0] for name in lines} == {"lbm", "published"}
    assert len(lines) == 1 + len(PUBLISHED["MNIST, N = 4"])
    assert said.findings[0].endswith("layer 91.00 ± 1.41; published, at best: 93.5 ± 0.6 (DeepSoftLog).")
    assert said.findings[-1].endswith(": 0.")
    (chart,) = neural.draw(rows)
    assert [curve.label for curve in chart.curves] == ["lbm", "published, best"]


def test_rows_of_an_older_recipe_are_not_mixed_with_those_of_today():
    (old, new) = (row("MNIST, N = 1", value) for value in (10.0, 90.0))
    old["recipe"] = 0
    (table,) = neural.section([old, new]).tables
    assert table.rows[0][2] == "90.00"


def test_every_published_figure_belongs_to_a_task_and_quick_tasks_need_no_data():
    assert PUBLISHED.keys() <= {task.name for task in TASKS}
    assert not any(task.name in PUBLISHED for task in TASKS if task.quick)


def test_a_small_task_gives_the_same_rows_every_time(monkeypatch):
    monkeypatch.setitem(sums.SMALL, 1, sums.Recipe(epochs=1, batch=16, rate=1e-2, average=0.9))
    monkeypatch.delenv("LBM_DATA", raising=False)
    key = {"task": "8 x 8 digits, N = 1", "recipe": task_named("8 x 8 digits, N = 1").recipe, "seed": 3}
    every = [neural.measure(key) for _ in range(2)]
    for each in every:
        for one in each:
            check_row(neural, one)
            one["seconds"] = one["processor_seconds"] = 0.0
    assert every[0] == every[1]
    values = {one["measure"]: one["value"] for one in every[0]}
    assert values["violations"] == 0
    assert values[SUM] > 15  # the most frequent sum is right in a tenth
    (said, _) = neural.section(every[0]).findings
    assert re.fullmatch(r"8 x 8 digits, N = 1, sum right, % \(one seed\): layer [\d.]+\.", said)
