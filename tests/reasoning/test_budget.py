"""Budgets of time are kept on one clock, which tests count."""

import math
import pickle
import time

import pytest

from lbm.errors import NoAnswer
from lbm.reasoning.budget import LEAST, NO_LIMIT, SPENT, Budget


def test_seconds_count_from_the_call(counted_clock):
    counted_clock.time = 5.0
    assert Budget.of(3) == Budget(8.0)
    assert Budget.of(None) == NO_LIMIT


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
def test_no_time_at_all_is_refused(seconds):
    with pytest.raises(ValueError, match="positive"):
        Budget.of(seconds)


def test_the_limit_of_a_command_ends_every_question(counted_clock, monkeypatch):
    now = counted_clock.time
    with monkeypatch.context() as command:
        command.setattr(Budget, "limit", now + 2)
        assert [Budget.of(seconds).deadline for seconds in (10, 1, None)] == [now + 2, now + 1, now + 2]
    assert Budget.of(10).deadline == now + 10  # afterwards there is none


def test_a_question_that_comes_late_has_time_for_one_attempt(counted_clock, monkeypatch):
    now = counted_clock.time
    monkeypatch.setattr(Budget, "limit", now - 5)
    late = [Budget.of(seconds).deadline for seconds in (10, None, 0.01)]
    assert late == [now + LEAST, now + LEAST, now + 0.01]


def test_a_tick_after_the_deadline_ends_the_work(counted_clock):
    budget = Budget.of(1)
    budget.tick()
    counted_clock.time += 2
    assert budget.spent()
    for tick in (budget.tick, budget.look, SPENT.tick):
        with pytest.raises(NoAnswer, match="allow more seconds"):
            tick()
    NO_LIMIT.tick()


def test_work_that_is_no_longer_needed_ends_at_its_next_tick():
    settled = []
    budget = NO_LIMIT.unless(lambda: bool(settled))
    budget.tick()
    settled.append("by another")
    for part in (budget, budget.half(), budget.at_most(5)):
        with pytest.raises(NoAnswer):
            part.tick()
    budget.at_least(5).tick()  # needed or not


def test_what_is_left_is_never_nothing(counted_clock):
    now = counted_clock.time
    assert Budget(now - 1).left() == -1
    assert Budget(now - 1).seconds() == 1e-3
    assert NO_LIMIT.seconds() is None


def test_parts_of_the_time_end_no_later_than_all_of_it(counted_clock):
    now = counted_clock.time
    budget = Budget(now + 4)
    assert budget.half() == budget.part(0.5) == Budget(now + 2)
    assert NO_LIMIT.half() == NO_LIMIT
    assert budget.at_most(1) == NO_LIMIT.at_most(1) == Budget(now + 1)
    assert budget.at_most(9) == budget.at_least(1) == budget
    assert budget.at_least(9) == Budget(now + 9)
    assert SPENT.at_most(1) == Budget(now + 1e-3)


def test_another_process_ends_at_the_same_time_of_day(counted_clock, monkeypatch):
    """Its clock is another one: here it is a thousand seconds ahead."""
    day = [5000.0]
    monkeypatch.setattr(time, "time", lambda: day[0])
    sent = pickle.dumps(Budget.of(10).unless(lambda: True))
    assert pickle.loads(pickle.dumps(NO_LIMIT)) == NO_LIMIT
    counted_clock.time += 1000
    day[0] += 3
    assert pickle.loads(sent) == Budget(counted_clock.time + 7)


def test_parts_of_a_budget_have_the_same_time_for_what_is_unsure(counted_clock):
    budget = Budget.of(8).trying(2.0)
    parts = budget.half(), budget.at_most(5), budget.part(0.1), budget.unless(lambda: False)
    assert {part.unsure for part in parts} == {2.0}
    assert NO_LIMIT.unsure == Budget.of(3).unsure == math.inf
    assert NO_LIMIT.at_most(NO_LIMIT.unsure) == NO_LIMIT
