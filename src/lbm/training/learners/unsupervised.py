"""LogicalRBM: what rows look like, learned beside what is known of them; there is no label."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lbm.arrays import Floats, slices
from lbm.errors import TrainingDiverged
from lbm.training.boltzmann.missing import MAX_SUMMED, complete
from lbm.training.boltzmann.network import to_machine
from lbm.training.data.rows import Rows, count_values
from lbm.training.data.table import read_atoms, read_table
from lbm.training.gradients.contrast import FilledRows, Random, ascend, compare, fill_rows, flatten, gibbs
from lbm.training.gradients.descent import SAMPLE, SHUFFLE, begin, stream, stream_key
from lbm.training.learners.estimator import Learner, check_whole, draw_seed, read_knowledge

WAYS: Final = 256
"""Ways to fill a row in that a pseudo-likelihood sums over; of rows with more of them some are drawn."""

ROWS: Final = 4096
"""Rows made dense and weighed at once."""

GIBBS: Final = 3
"""What random numbers are for, beside the purposes of lbm.training.gradients.descent."""


@dataclass(kw_only=True, eq=False, repr=False)
class LogicalRBM(TransformerMixin, Learner):  # type: ignore[misc]  # scikit-learn has no types
    """A restricted Boltzmann machine with knowledge among its hidden units, as a scikit-learn transformer.

        p(x) ∝ exp(-F(x)),    F(x) = -b·x - Σ_j log(1 + exp(c_j + Σ_i x_i W_ij))

    Visible units are atoms: columns of 0 and 1, and what an :class:`AtomEncoder` makes of other columns.
    Hidden units are those of the knowledge, then ``hidden`` more. All learn by contrastive divergence: of a
    formula its confidence does, which falls where the data break it.

    NaN is an atom that was not observed. In training it is filled in by a short chain whenever its row is
    met, given what was seen. Afterwards it is summed out, exactly up to 12 missing atoms a row, and over
    draws beyond; draws depend on the row and on ``random_state`` alone.

    Parameters
    ----------
    knowledge
        A theory over atoms, its text, a formula, or a path to a file; None: nothing is known.
    hidden
        Hidden units in addition to those of the knowledge.
    confidence
        What a formula without a weight begins with; one with a weight begins with that.
    hard
        Whether formulae without a weight keep their confidence.
    literals
        ``tied``: rules stay rules, and one confidence per formula is learned. ``free``: the weight of every
        literal is.
    steps, persistent
        Sweeps of a chain between two updates, and whether chains go on where they were (PCD) instead of
        beginning at the data (CD). There are ``batch_size`` persistent chains; where they no longer keep up
        with the weights, training gets worse again: lower ``learning_rate``, or do without them.
    optimiser
        ``sgd``, plain ascent, or ``adam``, which usually wants a smaller ``learning_rate``.
    learning_rate, batch_size, max_epochs
        Length of a step, rows between two updates, and passes over all rows.
    l1, l2
        Penalties, see :class:`lbm.training.gradients.costs.Cost`.
    encode
        ``auto``: columns that hold other values than 0, 1 and NaN pass through an encoder, and knowledge may
        mention thresholds and categories of its own. ``never``: they are an error.
    odd_cells
        Of a few cells in a column of numbers that are something else: ``text`` or ``missing``, see
        :class:`LBMClassifier`.
    names
        Names of the columns of an array; by default ``x0``, ``x1``, ... A DataFrame brings its own.
    dtype, device
        Of training: ``float32`` or ``float64``; ``cpu`` or another device of torch (others than the CPU are
        untested). What is said of rows afterwards is computed in float64 on the CPU.
    random_state, verbose
        As in scikit-learn; ``verbose=1`` prints a line per epoch on standard error.

    Attributes
    ----------
    layout_
        How columns become atoms; ``atoms_`` are their names.
    network_
        The trained :class:`lbm.training.boltzmann.network.Network`.
    confidences_
        A :class:`lbm.training.learners.estimator.Confidence` for every formula, in order.
    epochs_
        Passes made so far.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"bird": [1, 1, 0, 0], "flies": [1, 1, 0, 1]})
    >>> rbm = LogicalRBM(knowledge="bird -> flies", hidden=2, random_state=0).fit(rows)
    >>> rbm.get_feature_names_out().tolist()
    ['bird & flies', '~bird', 'hidden0', 'hidden1']
    >>> (rbm.reconstruct(pd.DataFrame({"bird": [1], "flies": [np.nan]})) > 0.5).tolist()
    [[True, True]]
    """

    hidden: int = 256
    persistent: bool = True
    optimiser: str = "sgd"
    learning_rate: float = 0.1
    batch_size: int = 32
    max_epochs: int = 30
    l2: float = 0.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    # -- training --

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows of ``X``, shape (rows, columns), in ``max_epochs`` passes; ``y`` is ignored."""
        del y
        _check_parameters(self)
        rows = self._start(X)
        for _ in range(self.max_epochs):
            self._pass(rows)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows of ``X`` in one pass, with chains and Adam's moments kept from call to call.

        The first call decides on columns and atoms. As many calls as ``max_epochs`` do what ``fit`` does.
        """
        del y
        _check_parameters(self)
        self._pass(self._rows(self._read(X, self.dtype)) if hasattr(self, "network_") else self._start(X))
        return self

    def _start(self, X: Any) -> Rows:
        """Decide on atoms, make the network that training begins with, and return the rows."""
        table = read_table(self, X, reset=True)
        theory = read_knowledge(self.knowledge)
        layout = self._lay_out(table, theory, drop=False)
        if not layout.atoms:
            raise ValueError(f"expected a column with two values, got none in {table.shape[0]} sample(s)")
        self.seed_ = draw_seed(self.random_state)
        self._begin(layout, layout.understood(theory))
        rows = self._rows(read_atoms(table, layout, dtype=self.dtype, odd=self.odd_cells))
        self.network_.start_at(*count_values(rows))
        self._progress = begin(self.network_)
        self._chains: Tensor | None = None
        self.epochs_ = 0
        return rows

    def _pass(self, rows: Rows) -> None:
        """Make one pass over the rows, in an order that depends on the seed and on the passes before."""
        begun = perf_counter()
        network = self.network_
        key = stream_key(self.seed_, SAMPLE, self.epochs_)
        generator = torch.Generator(device=self.device).manual_seed(key)
        on_cpu = network.weights.device.type == "cpu"
        random: Random = np.random.Generator(np.random.SFC64(key)) if on_cpu else generator
        order = stream(self.seed_, SHUFFLE, self.epochs_).permutation(len(rows))
        chains = self._chains if self.persistent else None
        if self.persistent and chains is None:
            chains = network.weights.new_zeros(self.batch_size, network.units)
        for first in range(0, len(order), self.batch_size):
            x = rows.batch(order[first : first + self.batch_size])
            if bool(x.sum().isnan()):  # a sum is NaN where one of its terms is
                kinds = torch.zeros(len(x), dtype=torch.int64, device=x.device)
                x = complete(network, x, generator, kinds=kinds)
            found, chains = compare(flatten(network), x, chains, steps=self.steps, generator=random)
            ascend(
                self._progress,
                found,
                optimiser=self.optimiser,
                learning_rate=self.learning_rate,
                l1=self.l1,
                l2=self.l2,
            )
        self._chains = chains
        self.epochs_ += 1
        size = float(sum(values.detach().abs().sum() for values in network.parameters()))
        if not np.isfinite(size):
            raise TrainingDiverged(self.epochs_, size)
        if self.verbose:
            took = perf_counter() - begun
            print(f"LogicalRBM: epoch {self.epochs_} of {len(rows)} rows, {took:.2f} s", file=sys.stderr)

    # -- what it says of rows --

    def transform(self, X: Any) -> Floats:
        """Return p(h_j = 1 | x), shape (rows, units), the knowledge's units first.

        Where values are missing it is p(h_j = 1 | x_seen) = Σ p(x_missing | x_seen) p(h_j = 1 | x).
        """
        return self._each(X, 1 << MAX_SUMMED, FilledRows.hidden_means)

    def reconstruct(self, X: Any) -> Floats:
        """Return σ(b + W p(h | x)), shape (rows, atoms): what the hidden units know of each row.

        Where a value is missing it is a guess at it, by one mean-field step from those that are there.
        """
        return self._each(X, 1 << MAX_SUMMED, FilledRows.reconstructions)

    def free_energy(self, X: Any) -> Floats:
        """Return F(x), shape (rows,), or F(x_seen) = -log Σ_{x_missing} exp(-F(x)).

        Differences are ratios of probabilities: log p(x) - log p(x') = F(x') - F(x).
        """
        return self._each(X, 1 << MAX_SUMMED, FilledRows.free_energies)

    def score_samples(self, X: Any) -> Floats:
        """Return the logarithm of the pseudo-likelihood of each row, Σ_i log p(x_i | all other atoms).

        Shape (rows,). Every atom has its term, where scikit-learn's BernoulliRBM draws one: the sum is exact,
        the same every time, and takes rows x atoms x units steps. Of a row with missing values, atoms seen
        have a term; the others are summed out up to WAYS ways to fill them in, and beyond over draws.
        """
        return self._each(X, WAYS, FilledRows.pseudo_likelihoods)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of :meth:`score_samples`."""
        del y
        return float(self.score_samples(X).mean())

    def sample(self, n: int = 1, *, sweeps: int = 1000, random_state: Any = None) -> Floats:
        """Return the states of ``n`` independent chains of block Gibbs sampling, shape (n, atoms).

        Chains begin at what the biases alone say, and need the more ``sweeps`` the more strongly hidden units
        bind atoms. Without ``random_state`` a fitted machine returns the same rows every time.
        """
        check_is_fitted(self)
        check_whole("n", n, 1)
        check_whole("sweeps", sweeps, 0)
        seed = self.seed_ if random_state is None else draw_seed(random_state)
        flat, drawn = flatten(self.network_), []
        for first in range(0, n, ROWS):
            generator = torch.Generator(device=self.device).manual_seed(stream_key(seed, GIBBS, first))
            drawn.append(gibbs(flat, min(ROWS, n - first), sweeps=sweeps, generator=generator))
        return torch.cat(drawn).cpu().numpy().astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return names of the hidden units: the cubes of the knowledge, then ``hidden0``, ``hidden1``, ..."""
        del input_features
        check_is_fitted(self)
        cubes = to_machine(self.network_).cubes
        known = [str(cubes[j]) for j in range(self.network_.knowledge.units)]
        return np.array([*known, *(f"hidden{j}" for j in range(self.network_.hidden))], dtype=object)

    # -- inside --

    def _read(self, X: Any, dtype: str) -> Any:
        return read_atoms(read_table(self, X, reset=False), self.layout_, dtype=dtype, odd=self.odd_cells)

    def _each(self, X: Any, ways: int, value: Callable[[FilledRows], Tensor]) -> Floats:
        """Return ``value`` of every row, a bounded number of rows at a time, in double precision."""
        check_is_fitted(self)
        rows = Rows(self._read(X, "float64"), dtype=torch.float64)
        network = self._precise()
        found = []
        for places in slices(len(rows), ROWS):
            x = rows.batch(np.arange(places.start, places.stop))
            some = fill_rows(network, x, ways=ways, seed=self.seed_)
            every = [(part.rows, value(part)) for part in some]
            order = torch.argsort(torch.cat([numbers for numbers, _ in every]))
            found.append(torch.cat([values for _, values in every])[order])
        return torch.cat(found).numpy()


def _check_parameters(estimator: LogicalRBM) -> None:
    for name, least in (("hidden", 0), ("batch_size", 1), ("max_epochs", 0), ("steps", 1)):
        check_whole(name, getattr(estimator, name), least)
    for name in ("learning_rate", "l1", "l2"):
        value = getattr(estimator, name)
        if not isinstance(value, Real) or not 0 <= float(value) < float("inf"):
            raise ValueError(f"{name} is a number from 0 up, got {value!r}")
    for name, known in (("optimiser", ("sgd", "adam")), ("dtype", ("float32", "float64"))):
        if getattr(estimator, name) not in known:
            raise ValueError(
                f"expected {name} {known[0]!r} or {known[1]!r}, got {getattr(estimator, name)!r}"
            )
