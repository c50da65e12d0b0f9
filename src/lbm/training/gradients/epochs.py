"""Epochs: what a run tells of each pass over its rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Epoch:
    """One pass over the rows: the mean cost on the way, and -log p(k | x) and accuracy on validation rows."""

    number: int
    cost: float
    validation_cost: float | None
    validation_accuracy: float | None
    seconds: float
