"""Addition of two decimal numbers as formulae: digits are groups of atoms, carries are atoms."""

from itertools import product

import numpy as np


def addition(digits: int) -> str:
    """Return the text of a theory of a + b = s, numbers of so many digits, the last digit first.

    ``a0_3`` says that the last digit of a is 3; ``c1`` that 1 is carried to the last digit but one.
    """
    lines = ["~c0"]
    for i in range(digits):
        lines += [f"exactly(1, {', '.join(group(name, i))})" for name in "abs"]
        for a, b, carry in product(range(10), range(10), (0, 1)):
            over, digit = divmod(a + b + carry, 10)
            given = f"a{i}_{a} & b{i}_{b} & {'' if carry else '~'}c{i}"
            lines.append(f"{given} -> s{i}_{digit} & {'' if over else '~'}c{i + 1}")
    return "\n".join(lines)


def group(name: str, place: int) -> list[str]:
    """Return the atoms of one digit."""
    return [f"{name}{place}_{digit}" for digit in range(10)]


def sums_to(total: int, digits: int) -> str:
    """Return the formula that the sum is this number."""
    said = [f"s{i}_{total // 10**i % 10}" for i in range(digits)]
    return " & ".join([*said, f"{'' if total // 10**digits else '~'}c{digits}"])


def seen(digits: int, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return rows of soft evidence: how likely each digit of a and of b is each of ten values."""
    found = {}
    for name, i in product("ab", range(digits)):
        chances = rng.dirichlet(np.full(10, 0.3), size=rows)
        found.update(zip(group(name, i), chances.T, strict=True))
    return found


def chances(evidence: dict[str, np.ndarray], digits: int) -> np.ndarray:
    """Return P(sum) of each row, shape (rows, sums): the distributions of the two numbers, convolved."""
    each = []
    for name in "ab":
        number = np.ones((len(evidence[f"{name}0_0"]), 1))
        for i in reversed(range(digits)):
            digit = np.stack([evidence[atom] for atom in group(name, i)], axis=1)
            number = (number[:, :, None] * digit[:, None, :]).reshape(len(number), -1)
        each.append(number / number.sum(axis=1, keepdims=True))
    size = 2 * 10**digits
    product_ = np.fft.irfft(np.fft.rfft(each[0], size) * np.fft.rfft(each[1], size), size)
    return product_
