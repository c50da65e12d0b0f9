"""The part about networks: what they learn from, that nothing they say breaks a theory, and what is shown."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import FileError
from lbm.trials.networks.published import ADDITION, PUBLISHED, SUM
from lbm.trials.networks.tasks import TASKS, task_named
from lbm.trials.parts import neural
from lbm.trials.storage import check_row, read_csv, write_csv

torch = pytest.importorskip("torch")

from lbm.trials.networks import images, sums  # noqa: E402 - they need torch


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


# --- what is shown ---------------------------------------------------------------------------------


def test_the_best_published_sums_are_those_that_goals_are_set_by():
    best = [max(figures[place][0] for figures in ADDITION.values() if figures[place]) for place in range(4)]
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
    assert "91.00 ± 1.41 % of the sums of unseen images are right; published: 93.5 ± 0.6" in said.findings[0]
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
    assert re.fullmatch(r"8 x 8 digits, N = 1: [\d.]+ % of the sums.*", neural.section(every[0]).findings[0])
