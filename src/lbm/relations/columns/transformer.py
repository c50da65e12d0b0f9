"""RelationalColumns: examples of a relational problem -> a table of 0 and 1, in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from lbm.arrays import Bools
from lbm.errors import MissingExtra, UnknownAtom
from lbm.knowledge.formula import atom_name
from lbm.relations.columns.answers import Background
from lbm.relations.columns.compare import comparison_columns
from lbm.relations.columns.grow import Language, grow_columns
from lbm.relations.columns.paper import bodies, literals, occurrences
from lbm.relations.columns.queries import Column, read_column
from lbm.relations.columns.relevance import select
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.builtins import BUILTINS
from lbm.relations.prolog.engine import STEPS
from lbm.relations.prolog.program import indicator
from lbm.relations.prolog.terms import Term, signature
from lbm.relations.saturate import Saturation

try:
    import pandas as pd
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:  # pragma: no cover - every test environment has them
    raise MissingExtra("train", "RelationalColumns", "scikit-learn") from error

FEATURES: Final = ("paper", "constants", "comparison")


@dataclass(eq=False, repr=False)
class RelationalColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Columns found on training examples, and their truth values for any example.

    Parameters
    ----------
    problem
        Where background knowledge and modes are from. Its own examples and labels are not looked at.
    features
        ``paper``: literals of bottom clauses, by their text (:mod:`lbm.relations.columns.paper`).
        ``constants``: queries with constants, thresholds, counts and chains
        (:mod:`lbm.relations.columns.grow`). ``comparison``: for targets over two objects of one type
        (:mod:`lbm.relations.columns.compare`). The latter two are true where the query has an answer.
    depth
        Of bottom clauses; None: as the problem says.
    size, support, cuts, constants, width, budget
        See :class:`lbm.relations.columns.grow.Language`.
    select
        How many columns to keep, by mRMR; None: all.
    also
        Texts of queries, as :mod:`lbm.relations.columns.queries` writes them, that are columns whatever
        examples say: for knowledge that mentions them. A column that is found keeps its own text.
    steps
        Goals that the engine may call for one answer of a rule.

    Attributes
    ----------
    columns_
        What is asked: :class:`lbm.relations.columns.queries.Column` each, or the texts of literals.
    names_
        Their texts; ``mentioned_`` are the numbers of those in ``also``.

    Examples
    --------
    >>> from lbm.relations.problem import make_problem
    >>> from lbm.relations.prolog.reader import read_clauses
    >>> problem = make_problem(
    ...     "tiny",
    ...     read_clauses("parent(a, b). parent(b, c). parent(b, d). parent(d, e)."),
    ...     read_clauses("grand(a, c). grand(a, d). grand(b, e)."),
    ...     read_clauses("grand(a, b). grand(b, c). grand(b, d). grand(c, e)."),
    ...     read_clauses(":- modeh(1, grand(+p, +p)). :- modeb(*, parent(+p, -p))."),
    ... )
    >>> columns = RelationalColumns(problem).fit(problem.examples, problem.labels)
    >>> table = columns.transform(problem.examples)
    >>> table["parent(A,C), parent(C,B)"].tolist()
    [1, 1, 1, 0, 0, 0, 0]
    """

    problem: RelationalProblem
    _: KW_ONLY
    features: str = "constants"
    depth: int | None = None
    size: int = 2
    support: float = 0.02
    cuts: int = 8
    constants: int = 20
    width: int = 1000
    budget: int | None = None
    select: int | None = None
    also: Sequence[str] = ()
    steps: int = STEPS

    def fit(self, X: Iterable[Term], y: Iterable[bool]) -> Self:
        """Find columns on examples ``X`` and their labels ``y``, one each."""
        examples, labels = list(X), [bool(label) for label in y]
        if len(examples) != len(labels) or not examples:
            raise ValueError(f"expected examples with a label each, got {len(examples)} and {len(labels)}")
        if self.features not in FEATURES:
            raise ValueError(f"expected features among {', '.join(FEATURES)}, got {self.features!r}")
        columns: list[Column] | list[str]
        # What answers questions remembers answers, and never labels.
        if self.features == "paper":
            self.saturation_ = Saturation(self.problem, depth=self.depth, steps=self.steps)
            columns = literals(bodies(self.saturation_, examples))
        else:
            find = grow_columns if self.features == "constants" else comparison_columns
            bounds = self.problem.modes.settings  # Popper's
            most, variables = bounds.get("max_body"), bounds.get("max_vars")
            size = min(self.size, most) if isinstance(most, int) and most > 0 else self.size
            language = Language(
                size,
                self.support,
                self.cuts,
                self.constants,
                self.width,
                variables if isinstance(variables, int) else None,
                self.budget,
            )
            self.answers_ = Background(self.problem, steps=self.steps)
            columns = find(self.answers_, examples, labels, language)
        if self.select is not None and len(columns) > self.select:
            chosen = select(self._table(columns, examples), labels, self.select)
            columns = [columns[k] for k in sorted(chosen.tolist())]
        self.names_ = [str(column) for column in columns]
        known, mentioned = set(map(atom_name, self.names_)), set(map(atom_name, self.also))
        more = [text for text in dict.fromkeys(self.also) if atom_name(text) not in known]
        asked = more if self.features == "paper" else [self._read_column(text) for text in more]
        self.columns_: list[Any] = [*columns, *asked]
        self.names_ += more
        self.mentioned_ = [k for k, name in enumerate(self.names_) if atom_name(name) in mentioned]
        return self

    def fit_transform(self, X: Iterable[Term], y: Iterable[bool] = (), **_: Any) -> Any:
        """Fit on examples and labels, and return the table of the same examples."""
        examples = list(X)
        return self.fit(examples, y).transform(examples)

    def transform(self, X: Iterable[Term]) -> Any:
        """Return a DataFrame of 0 and 1, one row for each example and one column for each query."""
        check_is_fitted(self, "columns_")
        examples = list(X)
        return pd.DataFrame(self._table(self.columns_, examples).astype(np.uint8), columns=self.names_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002 (scikit-learn passes it)
        """Return the names of the columns; ``input_features`` is there for scikit-learn."""
        check_is_fitted(self, "columns_")
        return np.array(self.names_, dtype=object)

    def keep(self, numbers: Iterable[int]) -> Self:
        """Leave only some of the columns, by their numbers."""
        check_is_fitted(self, "columns_")
        kept = list(numbers)
        self.columns_ = [self.columns_[k] for k in kept]
        self.names_ = [self.names_[k] for k in kept]
        self.mentioned_ = [new for new, old in enumerate(kept) if old in set(self.mentioned_)]
        return self

    # -- inside --

    def _read_column(self, text: str) -> Column:
        """Return a query; one about a predicate that nothing defines would be false of every example."""
        column = read_column(text)
        defined = self.problem.background.predicates
        steps = (*column.steps, *(column.fewer or ()))
        for goal in (goal for step in steps for goal in step.goals):
            found = signature(goal.template)
            if found is not None and found not in defined and found not in BUILTINS:
                asker = f"background, asked for by {column}"
                raise UnknownAtom(indicator(found), map(indicator, defined), asker)
        return column

    def _table(self, columns: Sequence[Column] | Sequence[str], examples: Sequence[Term]) -> Bools:
        if self.features == "paper":
            return occurrences(bodies(self.saturation_, examples), [str(column) for column in columns])
        return self.answers_.evaluate([one for one in columns if isinstance(one, Column)], examples)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
