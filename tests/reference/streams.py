"""The words of any atoms in any chains, by their positions alone: kernels draw the same."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbm.reasoning.engine.streams import BITS, key_of, philox


def words(
    seed: int, sweep: int, atoms: ArrayLike, chains: ArrayLike, *, stream: int = 0
) -> NDArray[np.uint32]:
    """Return the words of some atoms in some chains, shape (atoms, chains).

    ``stream`` says what the words are for: the same position in another stream is another word.
    """
    which = np.asarray(atoms, np.uint64)[:, None]
    four = philox((which >> np.uint64(2), sweep, np.asarray(chains, np.uint64), stream), key_of(seed))
    one = np.broadcast_to(which & np.uint64(3), four.shape[1:])[None].astype(np.intp)
    return np.asarray(np.take_along_axis(four, one, axis=0)[0] >> np.uint32(32 - BITS))
