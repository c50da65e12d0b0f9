"""Pictures of digits: MNIST from its files, and the small set that scikit-learn brings along.

MNIST is that of LeCun, Bottou, Bengio and Haffner (1998): 60,000 training and 10,000 test images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Ints
from lbm.errors import FileError
from lbm.knowledge.packed import read_whole
from lbm.trials.learners.sets import data_of

MEAN: Final = 0.1307
DEVIATION: Final = 0.3081
"""Of MNIST's training pixels: with these everybody shifts and scales them."""

HELD_OUT: Final = 10_000
"""The last training images of MNIST: settings were chosen on them, by networks trained on the others."""

SMALL: Final = (1300, 1796)
"""Where training images of scikit-learn's digits end, and where its test images do."""


@dataclass(frozen=True, eq=False)
class Images:
    """Images with their labels: to learn from, and to be judged by.

    Attributes
    ----------
    train, test
        Shapes (images, pixels) or (images, 1, height, width).
    train_labels, test_labels
        The digits, shape (images,).
    """

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor


@cache
def mnist() -> Images:
    """Return MNIST, from the directory ``mnist`` of LBM_DATA."""
    folder = data_of("MNIST") / "mnist"
    found = []
    for part, size in (("train", 60_000), ("t10k", 10_000)):
        pixels = read_idx(folder / f"{part}-images-idx3-ubyte.gz", (size, 28, 28))
        labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz", (size,))
        if labels.max() > 9:
            raise FileError(f"cannot read {folder}: expected labels from 0 to 9, found {labels.max()}")
        scaled = (pixels.astype(np.float32)[:, None] / 255 - MEAN) / DEVIATION
        found += [torch.from_numpy(scaled), torch.from_numpy(labels.astype(np.int64))]
    return Images(*found)


def held_out() -> Images:
    """Return MNIST's training images alone: the last 10,000 of them take the place of the test images."""
    images = mnist()
    size = len(images.train) - HELD_OUT
    return Images(
        images.train[:size], images.train_labels[:size], images.train[size:], images.train_labels[size:]
    )


@cache
def small_digits() -> Images:
    """Return scikit-learn's digits, 8 by 8 pixels, in an order of our own."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    x = torch.from_numpy((pixels[order] / 16).astype(np.float32))
    y = torch.from_numpy(labels[order].astype(np.int64))
    end, last = SMALL
    return Images(x[:end], y[:end], x[end:last], y[end:last])


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Return the bytes of a file in the idx format, which must have this shape.

    The format: two bytes of 0, 8 for bytes, the number of sizes, each size in four bytes, and the values.
    """
    data = read_whole(path)
    start = 4 + 4 * len(shape)
    sizes = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, start, 4))
    if data[:4] != bytes((0, 0, 8, len(shape))) or sizes != shape or len(data) != start + math.prod(shape):
        raise FileError(f"cannot read {path}: expected bytes of shape {shape} in the idx format")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def grouped(count: int, size: int, *, seed: int | None) -> Ints:
    """Return the numbers of images in groups, shape (groups, size): each image once, or is left over.

    In random order, or without a seed in that of the file.

    >>> grouped(7, 3, seed=None).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> sorted(grouped(6, 3, seed=1).ravel().tolist())
    [0, 1, 2, 3, 4, 5]
    """
    order = np.arange(count) if seed is None else np.random.default_rng([seed, size]).permutation(count)
    return order[: count - count % size].reshape(-1, size)
