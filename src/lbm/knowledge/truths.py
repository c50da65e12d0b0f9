"""Which of many formulae are true in a world, all at once on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from lbm.knowledge.formula import CARDINALITIES, Formula, postorder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Places = NDArray[np.intp]

_SWAPPED: Final = {"implies": "or", "iff": "xor"}  # the same with the first argument negated


class Truths:
    """Formulae laid out once, so that a world costs a few array operations for each level of nesting.

    Every distinct part has a place; parts of one kind whose arguments are known are worked out together.

    >>> from lbm.knowledge.parser import parse
    >>> Truths(["a", "b"], [parse("a -> b"), parse("exactly(1, a, b)")]).true_in([False, True])
    array([ True,  True])
    """

    def __init__(self, atoms: Sequence[str], formulae: Sequence[Formula]) -> None:
        import numpy as np

        place: dict[str, int] = {name: i for i, name in enumerate(atoms)}
        where: dict[Formula, int] = {}
        level: list[int] = [0] * len(place)
        groups: dict[tuple[int, str], list[tuple[int, Formula]]] = {}
        for node in postorder(*formulae):
            if node.kind == "atom":
                where[node] = place[node.label]
                continue
            depth = 1 + max((level[where[part]] for part in node.args), default=0)
            where[node] = len(level)
            kind = "count" if node.kind in CARDINALITIES else node.kind
            groups.setdefault((depth, kind), []).append((len(level), node))
            level.append(depth)
        self.atoms, self.size = len(place), len(level)
        self.roots: Places = np.array([where[formula] for formula in formulae], np.intp)
        self._steps: list[tuple[str, Places, tuple[Any, ...]]] = []
        for (_, kind), members in sorted(groups.items(), key=lambda item: item[0][0]):
            to = np.array([number for number, _ in members], np.intp)
            self._steps.append((kind, to, self._arguments(kind, [node for _, node in members], where)))

    @staticmethod
    def _arguments(kind: str, nodes: list[Formula], where: dict[Formula, int]) -> tuple[Any, ...]:
        """Return the places that the parts of one step are worked out from."""
        import numpy as np

        if kind == "count":
            sizes = [len(node.args) for node in nodes]
            least = [0 if node.kind == "atmost" else node.label for node in nodes]
            most = [
                size if node.kind == "atleast" else node.label
                for node, size in zip(nodes, sizes, strict=True)
            ]
            flat = np.array([where[part] for node in nodes for part in node.args], np.intp)
            ends = np.cumsum([0, *sizes])
            return flat, ends, np.array(least, np.int64), np.array(most, np.int64)
        columns = zip(*([where[part] for part in node.args] for node in nodes), strict=True)
        return tuple(np.array(column, np.intp) for column in columns)

    def true_in(self, values: Sequence[bool] | Bools) -> Bools:
        """Return which formulae are true where the atoms have these values, shape (formulae,)."""
        import numpy as np

        x = np.zeros(self.size, bool)
        x[: self.atoms] = values
        for kind, to, arguments in self._steps:
            if kind == "count":
                flat, ends, least, most = arguments
                sums = np.zeros(len(flat) + 1, np.int64)
                np.cumsum(x[flat], out=sums[1:])
                number = np.diff(sums[ends])
                x[to] = (least <= number) & (number <= most)
            elif kind in ("true", "false"):
                x[to] = kind == "true"
            else:
                first = x[arguments[0]]
                if kind == "not" or kind in _SWAPPED:
                    np.logical_not(first, out=first)
                if kind != "not":
                    both = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
                    first = both[_SWAPPED.get(kind, kind)](first, x[arguments[1]])
                x[to] = first
        found: Bools = x[self.roots]
        return found
