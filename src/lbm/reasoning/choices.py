"""What may be chosen where a question is asked, in Python and on the command line."""

from __future__ import annotations

from typing import Final

DISTRIBUTIONS: Final = ("logical", "machine")
"""What a probability may be about: the models and their scores, or a machine as built."""

METHODS: Final = ("auto", "exact", "collapsed", "tempered", "gibbs")
"""How a probability is found or a world drawn; auto: exactly, and where that is too much by chains.

Chains are collapsed first; where they do not agree, tempered.
"""

FAST: Final = "fast"
"""One more way to draw models: by annealing, neither uniform nor weighted."""

POPULATION: Final = "population"
"""How log Z is estimated where it cannot be summed."""

MODES: Final = ("entailed", "preferred")
"""What may follow: a formula true in every model, or in every best one."""
