"""Rules over relations (Markov logic): labels as evidence, and how likely every other atom is."""

from lbm.relations.evidence.query import Chances, infer, marginals
from lbm.relations.evidence.residual import GroundRules, prepare
from lbm.relations.evidence.rules import constants_of, ground, labels_of, spelled
from lbm.relations.evidence.weights import Choice, choose_weight, log_odds, mix, mixed

infer_labels = infer
"""The name of :func:`infer` in version 0.1."""

__all__ = [
    "Chances",
    "Choice",
    "GroundRules",
    "choose_weight",
    "constants_of",
    "ground",
    "infer",
    "infer_labels",
    "labels_of",
    "log_odds",
    "marginals",
    "mix",
    "mixed",
    "prepare",
    "spelled",
]
