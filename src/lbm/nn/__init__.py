"""Theories as layers on deep networks (neurosymbolic layers): needs the extra ``train``."""

from lbm.nn.layer import LogicLayer
from lbm.nn.outcome import AtomChances, LogicOutput
from lbm.nn.readings import Shortcuts, shortcuts
from lbm.nn.sampled import Phases, SampledOutput
from lbm.nn.store import load_layer, save_layer

__all__ = [
    "AtomChances",
    "LogicLayer",
    "LogicOutput",
    "Phases",
    "SampledOutput",
    "Shortcuts",
    "load_layer",
    "save_layer",
    "shortcuts",
]
