"""Rows of a table selected by their values, and their values by column."""

from __future__ import annotations

from collections.abc import Iterable

from lbm.trials.part import Row, Value


def where(rows: Iterable[Row], **wanted: Value) -> list[Row]:
    """Return the rows that have these values in these columns.

    >>> where([{"set": "krk", "seed": 0}, {"set": "krk", "seed": 1}], set="krk", seed=1)
    [{'set': 'krk', 'seed': 1}]
    """
    return [row for row in rows if all(row[column] == value for column, value in wanted.items())]


def number(row: Row, column: str) -> float:
    """Return a value that is there."""
    value = row[column]
    assert isinstance(value, int | float), "a column of numbers that are always there"
    return float(value)


def numbers(rows: Iterable[Row], column: str) -> list[float]:
    """Return the values of a column of numbers that are always there."""
    return [number(row, column) for row in rows]


def by_fold(rows: Iterable[Row], column: str) -> dict[tuple[str, int], float]:
    """Return the values of a column by fold and seed, as far as they are there."""
    some = (row for row in rows if row[column] is not None)
    return {(str(row["fold"]), int(number(row, "seed"))): number(row, column) for row in some}


def different(rows: Iterable[Row], column: str) -> list[str]:
    """Return the different texts of a column, in order of appearance."""
    return list(dict.fromkeys(str(row[column]) for row in rows))
