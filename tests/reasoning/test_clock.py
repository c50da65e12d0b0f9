"""Budgets of time are kept on one clock, which tests count."""

import math
from contextvars import copy_context

import pytest

from lbm.errors import NoAnswer
from lbm.reasoning import clock


def test_seconds_count_from_the_call(counted_clock):
    counted_clock.time = 5.0
    assert clock.deadline_in(3) == 8.0
    assert clock.deadline_in(None) == math.inf


@pytest.mark.parametrize("seconds", [0, -1, math.nan])
def test_no_time_at_all_is_refused(seconds):
    with pytest.raises(ValueError, match="positive"):
        clock.deadline_in(seconds)


def test_a_limit_ends_every_question_of_its_context(counted_clock):
    def limited():
        clock.limit_to(counted_clock.time + 2)
        return clock.deadline_in(10), clock.deadline_in(1), clock.deadline_in(None)

    now = counted_clock.time
    assert copy_context().run(limited) == (now + 2, now + 1, now + 2)
    assert clock.deadline_in(10) == now + 10  # outside there is none


def test_a_question_that_comes_late_has_time_for_one_attempt(counted_clock):
    def late():
        clock.limit_to(counted_clock.time - 5)
        return clock.deadline_in(10), clock.deadline_in(None), clock.deadline_in(0.01)

    now = counted_clock.time
    assert copy_context().run(late) == (now + clock.LEAST, now + clock.LEAST, now + 0.01)


def test_a_tick_after_the_deadline_ends_the_work(counted_clock):
    with clock.until(counted_clock.time + 1):
        clock.tick()
        counted_clock.time += 2
        with pytest.raises(NoAnswer):
            clock.tick()
    clock.tick()


def test_work_that_is_no_longer_needed_ends_at_its_next_tick(counted_clock):
    settled = []
    with clock.until(math.inf, lambda: bool(settled)):
        clock.tick()
        settled.append("by another")
        with pytest.raises(NoAnswer):
            clock.tick()
    clock.tick()


def test_what_is_left_is_never_nothing(counted_clock):
    now = counted_clock.time
    assert clock.left(now - 1) == 1e-3
    assert clock.left(math.inf) is None
    assert clock.halfway(now + 4) == now + 2
