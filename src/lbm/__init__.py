"""Logical Boltzmann Machines: knowledge and data as one restricted Boltzmann machine.

Names are loaded on first use, so that formulae never wait for arrays.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of typing, which an interrupt at the start of a command should not wait for

__version__ = "0.1.0"

_HOMES = {
    name: module
    for module, names in {
        "lbm.knowledge.formula": "Formula atom atleast atmost exactly holds iff",
        "lbm.knowledge.parser": "parse",
        "lbm.knowledge.theory": "Theory",
        "lbm.logic.sdnf": "to_sdnf",
        "lbm.machine.rbm": "Machine",
        "lbm.machine.translate": "translate",
        # distance is the older name of uniformity: it is not in __all__
        "lbm.reasoning.reasoner": (
            "Reasoner ask best count distance entails log_partition log_probability marginals models sample "
            "uniformity"
        ),
        "lbm.relations.evidence.query": "infer",
        "lbm.relations.problem": "RelationalProblem",
        "lbm.training.data.encoder": "AtomEncoder",
        "lbm.training.learners.classifier": "LBMClassifier",
        "lbm.training.learners.unsupervised": "LogicalRBM",
        "lbm.training.relational.induce": "induce",
        "lbm.training.storage.kinds": "load save",
        "lbm.training.storage.store": "load_model save_model",
        "lbm.views.plots": "draw",
    }.items()
    for name in names.split()
}
"""The module of every name."""

_PACKAGES = {"nn": "lbm.nn"}
"""Names that are modules themselves, and need an extra."""

__all__ = [
    "AtomEncoder",
    "Formula",
    "LBMClassifier",
    "LogicalRBM",
    "Machine",
    "Reasoner",
    "RelationalProblem",
    "Theory",
    "__version__",
    "ask",
    "atleast",
    "atmost",
    "atom",
    "best",
    "count",
    "datasets",
    "draw",
    "entails",
    "exactly",
    "holds",
    "iff",
    "induce",
    "infer",
    "load",
    "load_model",
    "log_partition",
    "log_probability",
    "marginals",
    "models",
    "nn",
    "parse",
    "sample",
    "save",
    "save_model",
    "to_sdnf",
    "translate",
    "uniformity",
]

if TYPE_CHECKING:
    from typing import Any

    from lbm import datasets, nn
    from lbm.knowledge.formula import Formula, atleast, atmost, atom, exactly, holds, iff
    from lbm.knowledge.parser import parse
    from lbm.knowledge.theory import Theory
    from lbm.logic.sdnf import to_sdnf
    from lbm.machine.rbm import Machine
    from lbm.machine.translate import translate
    from lbm.reasoning.reasoner import (
        Reasoner,
        ask,
        best,
        count,
        entails,
        log_partition,
        log_probability,
        marginals,
        models,
        sample,
        uniformity,
    )
    from lbm.relations.evidence.query import infer
    from lbm.relations.problem import RelationalProblem
    from lbm.training.data.encoder import AtomEncoder
    from lbm.training.learners.classifier import LBMClassifier
    from lbm.training.learners.unsupervised import LogicalRBM
    from lbm.training.relational.induce import induce
    from lbm.training.storage.kinds import load, save
    from lbm.training.storage.store import load_model, save_model
    from lbm.views.plots import draw


_EXTRA = {"torch": "torch", "sklearn": "scikit-learn", "pandas": "pandas"}
"""Packages of the extra `train`, as they are imported and as they are installed."""


def _home(name: str) -> Any:
    """Return the module that defines a name, or say which extra it needs."""
    from importlib import import_module

    try:
        return import_module(_PACKAGES.get(name) or _HOMES[name])
    except ImportError as error:
        from lbm.errors import MissingExtra

        if isinstance(error, MissingExtra):
            raise MissingExtra(error.extra, f"lbm.{name}", error.package) from error
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        raise MissingExtra("train", f"lbm.{name}", _EXTRA[package]) from error


def __getattr__(name: str) -> Any:
    if name == "datasets":
        from importlib import import_module

        return import_module("lbm.datasets")
    if name == "nn":
        return _home(name)
    if name in _HOMES:
        value = getattr(_home(name), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'lbm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
