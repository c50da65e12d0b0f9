"""Small networks drawn at random, and what they are by enumeration of every hidden state, in plain NumPy."""

from dataclasses import replace
from itertools import product

import numpy as np
import torch
from hypothesis import strategies as st

from lbm.knowledge.formula import atom, cardinality
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import compile_knowledge, label_names
from lbm.training.boltzmann.network import Network
from tests.strategies import BINARY

COLUMNS = ("a", "b", "c")


def networks(*, literals=None, max_hidden=2, groups=()):
    """Networks in double precision over three columns: knowledge of any shape, random weights everywhere.

    Drawn from a number, not part by part: Hypothesis would spend longer on choosing than tests on testing.
    """
    return st.integers(0, 2**32).map(lambda seed: draw_network(seed, literals, max_hidden, groups))


def draw_network(seed, literals=None, max_hidden=2, groups=()):
    random = np.random.default_rng(seed)
    labels = label_names("y", range(random.integers(2, 5)))
    names = [*COLUMNS, *labels, labels[-1]]
    theory = Theory([(_weight(random), _formula(random, names, 3)) for _ in range(random.integers(0, 3))])
    confidence = float(random.choice([0.5, 2.0]))
    knowledge = compile_knowledge(theory, columns=COLUMNS, labels=labels, confidence=confidence)
    fixed, hidden = random.random(len(theory)) < 0.3, int(random.integers(0, max_hidden + 1))
    literals = str(random.choice(["tied", "free"])) if literals is None else literals
    network = Network(
        replace(knowledge, fixed=fixed, calibrated=literals == "tied" and bool(random.integers(0, 2))),
        hidden=hidden,
        literals=literals,
        groups=groups,
        dtype=torch.float64,
    )
    shake(network, seed)
    return network


def _weight(random):
    weight = int(random.integers(-3, 4))
    return weight or None


def _formula(random, names, size):
    if size <= 1:
        return atom(str(random.choice(names)))
    left = int(random.integers(1, size))
    kind = str(random.choice(["not", *BINARY, "exactly"]))
    if kind == "not":
        return ~_formula(random, names, size)
    parts = [_formula(random, names, left), _formula(random, names, size - left)]
    return cardinality(kind, 1, parts) if kind == "exactly" else BINARY[kind](*parts)


def shake(network, seed, scale=0.7):
    """Move every parameter, so that nothing is special."""
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for values in network.parameters():
            values.add_(torch.as_tensor(random.normal(0, scale, values.shape)))


def numbers(tensor):
    return tensor.detach().numpy()


def close(one, other, *, atol=1e-9, rtol=1e-7):
    """Compare tensors; torch's own comparison takes a second to be imported."""
    np.testing.assert_allclose(numbers(one), numbers(other), atol=atol, rtol=rtol)


def plain_weights(network):
    """Weights and biases over (columns, labels) x units, written out from the definitions."""
    knowledge = network.knowledge
    signs = knowledge.signs.toarray().astype(float)
    weights, bias = np.zeros(signs.shape), np.zeros(signs.shape[1])
    if network.literals == "tied":
        kappa, movable = knowledge.initial.copy(), np.flatnonzero(~knowledge.fixed)
        for i, theta in zip(movable, numbers(network.raw_confidence), strict=True):
            kappa[i] = np.log1p(np.exp(theta))
        for j in range(signs.shape[1]):
            strength = sum(
                kappa[i] for i, unit in zip(knowledge.owner, knowledge.unit, strict=True) if unit == j
            )
            wanted = (signs[:, j] > 0).sum()
            weights[:, j] = strength * signs[:, j]
            bias[j] = strength * (0.5 - wanted)
            if knowledge.calibrated:
                weights[:, j] = (strength + 30) * signs[:, j]
                bias[j] = np.log(np.expm1(strength)) - (strength + 30) * wanted
    else:
        values = iter(numbers(network.literal_weights).tolist())
        for j in range(signs.shape[1]):
            for i in np.flatnonzero(signs[:, j]):
                weights[i, j] = next(values)
        for place, j in enumerate(network.order):
            bias[j] = numbers(network.literal_bias)[place]
    random = np.concatenate([numbers(network.weights), numbers(network.label_weights)])
    return (
        np.concatenate([weights, random], axis=1),
        np.concatenate([bias, numbers(network.hidden_bias)]),
        np.concatenate([numbers(network.visible_bias), numbers(network.label_bias)]),
    )


def patterns(network):
    labels = len(network.knowledge.labels)
    return np.array([[0.0], [1.0]]) if labels == 1 else np.eye(labels)


def brute_log_scores(network, rows, *, unaided=False):
    """log Σ_h exp(v·a + h·s(v)) for every row and class, by enumeration of h; of knowledge, or without."""
    weights, bias, visible = plain_weights(network)
    if unaided:
        weights, bias = weights[:, network.knowledge.units :], bias[network.knowledge.units :]
    states = np.array(list(product((0.0, 1.0), repeat=len(bias))))
    out = np.zeros((len(rows), len(patterns(network))))
    for i, row in enumerate(rows):
        for k, pattern in enumerate(patterns(network)):
            v = np.concatenate([row, pattern])
            exponents = states @ (v @ weights + bias) + v @ visible
            out[i, k] = np.logaddexp.reduce(exponents)
    return out


def softmax(scores):
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


EVERY_ROW = np.array(list(product((0.0, 1.0), repeat=len(COLUMNS))))
