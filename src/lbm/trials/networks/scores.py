"""What a trained network is judged by."""

from __future__ import annotations

from typing import NamedTuple


class Score(NamedTuple):
    """The value of one measure for one way to predict."""

    method: str
    measure: str
    value: float
