"""The two distributions that a probability may be about, with one set of questions for both.

- *logical*: P(x) ∝ exp(score(x)/τ) over the models of a theory;
- *machine*: P(x) ∝ exp(-F(x)) over all worlds, for one machine as built, at confidence c and temperature τ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from lbm.arrays import Bools
from lbm.errors import WeightError, WrongDistribution
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import exponent
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.exact.whole import How
from lbm.reasoning.problem import Known

if TYPE_CHECKING:
    import numpy as np

    from lbm.machine.rbm import Machine
    from lbm.reasoning.sampling.targets import Target
    from lbm.reasoning.wells import Wells

Given = Formula | None

_LARGEST: Final = 1e300  # exponents that chains add up without passing what a double can hold


@dataclass(frozen=True, slots=True)
class Logical:
    """P(x) ∝ exp(score(x)/τ) over the models of a theory."""

    theory: Theory
    known: Known
    temperature: float = 1.0
    confidence: None = None  # models are counted, not wells

    name: ClassVar = "logical"

    def exactly(self, budget: Budget) -> Exact:
        """Return exact answers about the models."""
        return Exact(self.theory, How(known=self.known, budget=budget), self.temperature)

    def target(
        self,
        query: Given,
        given: Given,
        method: str,
        rng: np.random.Generator,
        budget: Budget,
        more: Bools | None = None,
    ) -> Target:
        """Return what chains run on: the score, and penalties for hard formulae; tempered if asked for.

        With a query, of as much as it depends on. ``more``: further worlds to begin in, over the atoms of the
        target that gave them.
        """
        from lbm.reasoning.sampling import targets

        if method == "gibbs":
            raise WrongDistribution(
                "block Gibbs samples a machine's own distribution, not the logical one: "
                "ask for distribution='machine' (--distribution machine), or for method='collapsed'"
            )
        split = self.exactly(budget).possible(given)
        total = sum(abs(weight) for component in split.components for _, weight in component.soft)
        if not exponent(total, split.scale, self.temperature) < _LARGEST:
            raise WeightError(
                f"expected weights whose sum divided by the temperature {self.temperature:g} is below "
                f"{_LARGEST:g}: raise the temperature, or ask for method='exact'"
            )
        return targets.logical(
            split, query, self.temperature, rng, tempering=method == "tempered", more=more, budget=budget
        )

    def settled(self, given: Given, budget: Budget) -> dict[str, bool]:
        """Return the atoms that hard formulae and evidence fix by propagation."""
        return self.exactly(budget).possible(given).fixed


@dataclass(frozen=True, slots=True)
class OfMachine:
    """P(x) ∝ exp(-F(x)) of one machine as built."""

    machine: Machine
    confidence: float = 5.0
    temperature: float = 1.0

    name: ClassVar = "machine"

    @property
    def _options(self) -> dict[str, float]:
        return {"confidence": self.confidence, "temperature": self.temperature}

    def exactly(self, budget: Budget) -> Wells:
        """Return exact answers about the machine."""
        from lbm.reasoning.wells import Wells

        return Wells.of(self.machine, **self._options, budget=budget)

    def target(
        self,
        query: Given,
        given: Given,
        method: str,
        rng: np.random.Generator,
        budget: Budget,
        more: Bools | None = None,  # noqa: ARG002 - the same door for both
    ) -> Target:
        """Return what chains run on: free energies, or all units if block Gibbs is asked for."""
        from lbm.reasoning.sampling import targets

        if method == "tempered":
            raise WrongDistribution(
                "ladders are for the logical distribution: ask a machine with method='collapsed' or 'gibbs'"
            )
        return targets.machine_distribution(
            self.machine, query, given, **self._options, rng=rng, budget=budget, raw=method == "gibbs"
        )

    def settled(self, given: Given, budget: Budget) -> dict[str, bool]:  # noqa: ARG002 - the same door for both
        """Return nothing: chains run on all atoms."""
        return {}


Distribution = Logical | OfMachine
"""What may be asked, exactly or by chains."""
