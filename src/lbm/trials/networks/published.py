"""Published figures that stand beside ours, all of them here, each with where it is from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that others published, as they wrote it, with its standard deviation where they gave one.

    ``origin``: "source", their own files; "table", a table in another paper; "recalled", not looked up.
    """

    system: str
    measure: str
    figure: str
    origin: str = "source"

    @property
    def value(self) -> float:
        """The figure without its deviation.

        >>> Published("DeepStochLog", "sum right, %", "97.9 ± 0.1").value
        97.9
        """
        return float(self.figure.partition(" ± ")[0])


SUM: Final = "sum right, %"

ADDITION: Final = {
    "LTN": ("80.54 ± 23.33", "77.54 ± 35.55", "", ""),
    "NeuPSL": ("97.34 ± 0.26", "93.91 ± 0.37", "", ""),
    "NeurASP": ("97.3 ± 0.3", "93.9 ± 0.7", "", ""),
    "DeepProbLog": ("97.2 ± 0.5", "95.2 ± 1.7", "", ""),
    "DeepStochLog": ("97.9 ± 0.1", "96.4 ± 0.1", "92.7 ± 0.6", ""),
    "Embed2Sym": ("97.62 ± 0.29", "93.81 ± 1.37", "91.65 ± 0.57", "60.46 ± 20.4"),
    "A-NeSI, predict": ("97.66", "95.96", "92.56", "75.90"),
    "A-NeSI, explain": ("97.37", "96.04", "92.11", "76.84"),
    "DeepSoftLog": ("", "", "93.5 ± 0.6", "77.1 ± 1.6"),
    "PLIA": ("", "", "91.84 ± 0.73", "79.00 ± 0.73"),
    "Scallop": ("", "", "90.88 ± 0.48", ""),
    "NeSyDM": ("", "", "92.49 ± 0.98", "77.29 ± 1.40"),
}
"""How many sums of two numbers of 1, 2, 4 and 15 MNIST digits are right, %; empty: no figure."""

FROM_TABLES: Final = ("DeepSoftLog", "PLIA", "Scallop", "NeSyDM")
"""Systems whose figures are from tables in other papers."""


def _sums(place: int) -> tuple[Published, ...]:
    """Return the figures for one number of digits."""
    return tuple(
        Published(system, SUM, figures[place], "table" if system in FROM_TABLES else "source")
        for system, figures in ADDITION.items()
        if figures[place]
    )


EXACT: Final = "exact match, %"
FIRST: Final = "exact match, first listed path, %"
AREA: Final = "AU(PRC)"
DIGIT: Final = "digit right, %"

TREES: Final = {
    "cellcycle": (0.255, 3.05, 3.79),
    "Diatoms": (0.758, 48.21, 58.71),
    "Enron": (0.756, 5.97, 8.18),
    "ImCLEF07A": (0.956, 79.75, 86.08),
    "ImCLEF07D": (0.927, 76.47, 81.06),
}
"""By set: area under the curve of precision and recall of C-HMCNN; exact match of C-HMCNN, and of SPL."""

CONCEPTS: Final = {
    "MNIST-Half": {
        "independent": (98.2, 42.8),
        "semantic loss": (99.6, 42.9),
        "BEARS": (99.8, 43.3),
        "NeSyDM": (99.1, 79.4),
    },
    "MNIST-EvenOdd": {
        "independent": (70.8, 0.4),
        "semantic loss": (97.4, 0.3),
        "NeSyDM": (98.3, 20.3),
    },
}
"""Accuracy of sums, and of digits."""


def _structured(what: str, plain: float, loss: float, layer: float) -> tuple[Published, ...]:
    """Return the figures of a plain network, the semantic loss and SPL."""
    return (
        Published("MLP", what, str(plain), "recalled"),
        Published("semantic loss", what, str(loss), "table"),
        Published("SPL", what, str(layer), "table"),
    )


PUBLISHED: Final = {
    **{f"MNIST, N = {digits}": _sums(place) for place, digits in enumerate((1, 2, 4, 15))},
    "MNIST, 100 labels": (Published("semantic loss", DIGIT, "98.38 ± 0.51", "recalled"),),
    "4 x 4 grid": _structured(FIRST, 5.6, 28.5, 37.6),
    "four of ten kinds": _structured(EXACT, 1.0, 15.0, 20.8),
    **{
        name: (
            Published("C-HMCNN", EXACT, str(coherent), "recalled"),
            Published("C-HMCNN", AREA, str(area), "table"),
            Published("SPL", EXACT, str(layer), "recalled"),
        )
        for name, (area, coherent, layer) in TREES.items()
    },
    **{
        name: tuple(
            Published(system, what, str(value), "table")
            for system, values in systems.items()
            for what, value in zip((SUM, DIGIT), values, strict=True)
        )
        for name, systems in CONCEPTS.items()
    },
}
"""By the name of the task."""
