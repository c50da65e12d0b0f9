"""Which of many formulae are true in a world, all at once on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lbm.knowledge.formula import CARDINALITIES, TRUTH, Formula, bounds, postorder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.arrays import Bools

    Places = NDArray[np.intp]


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
            least, most = np.array([bounds(node) for node in nodes], np.int64).T
            flat = np.array([where[part] for node in nodes for part in node.args], np.intp)
            return flat, np.cumsum([0, *(len(node.args) for node in nodes)]), least, most
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
            else:
                x[to] = TRUTH[kind](*(x[places] for places in arguments))
        found: Bools = x[self.roots]
        return found
