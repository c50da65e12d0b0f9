"""Rules over relations: labels as evidence, and how likely every other atom is."""

from lbm.relations.evidence.query import Chances, infer_labels, marginals
from lbm.relations.evidence.residual import Prepared, prepare
from lbm.relations.evidence.rules import constants_of, ground, labels_of, spelled
from lbm.relations.evidence.weights import Choice, choose_weight, log_odds, mix, mixed

__all__ = [
    "Chances",
    "Choice",
    "Prepared",
    "choose_weight",
    "constants_of",
    "ground",
    "infer_labels",
    "labels_of",
    "log_odds",
    "marginals",
    "mix",
    "mixed",
    "prepare",
    "spelled",
]
