"""How many atoms one side updates in a second, in a process with a given number of threads.

    python -m measuring.speeds SIDE ATOMS CLAUSES THREADS SECONDS

It prints a line of JSON: ``atoms``, atom updates per second; ``units``, those of all variables, hidden or
auxiliary ones included; ``chains``, how many ran side by side. Where a side is not installed it prints
``null``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from measuring.problems import Problem, quadratic, random_clauses

CHAINS = (64, 1_024)  # side by side in block Gibbs: the better one counts
CONFIDENCE = 5.0
SWEEPS = 256  # of one annealing from hot to cold, the same for every size

Rate = dict[str, float]


def rate(step: Callable[[], int], limit: float) -> float:
    """Return how much ``step`` does in a second, which says how much it did; a first call is not counted."""
    step()
    done, start = 0, time.perf_counter()
    while (took := time.perf_counter() - start) < limit:
        done += step()
    return done / took


# --- ours --------------------------------------------------------------------------------------------


def lbm_updates(kind: str, problem: Problem, threads: int, limit: float) -> Rate:
    """Return the speed of compiled chains: ``lanes``, 64 with counters, or ``bits``, 512 with a bit for each.

    Every thread anneals chains of its own again and again, at the temperatures the problem asks for. This is
    the only place that knows the engine from inside.
    """
    from lbm.reasoning.compiling.ready import compile_here
    from lbm.reasoning.engine.lanes import advance, random_states, start, weights_of
    from lbm.reasoning.engine.network import network_of_clauses
    from lbm.reasoning.engine.schedule import ladder, rising
    from lbm.reasoning.engine.sliced import CHAINS as BITS
    from lbm.reasoning.engine.sliced import advance_sliced, random_rows, sliced_of

    compile_here()
    assert problem.weights is not None
    soft = problem.weights.astype(np.float64)
    network = network_of_clauses(
        problem.atoms, problem.literals, problem.starts, soft, np.zeros(len(problem))
    )
    weights = weights_of(network, 1.0)
    betas = rising(*ladder(network, weights, seed=0), SWEEPS)
    sliced = sliced_of(network, weights)
    chains = 64 if kind == "lanes" else BITS

    def block(number: int) -> Callable[[], int]:
        if kind == "lanes":
            states = random_states(problem.atoms, 0, chains * number)
            lanes = start(network, weights, states, seed=0, lane=chains * number)
            return lambda: advance(lanes, betas, rule="metropolis") * problem.atoms * chains
        assert sliced is not None, "clauses of small weights fit"
        rows, done = random_rows(problem.atoms, seed=0, lane=chains * number), [0]

        def step() -> int:
            ran = advance_sliced(sliced, rows, betas, seed=0, sweep=done[0], lane=chains * number)
            done[0] += ran
            return ran * problem.atoms * chains

        return step

    with ThreadPoolExecutor(threads) as pool:
        found = sum(pool.map(lambda number: rate(block(number), limit), range(threads)))
    return {"atoms": found, "units": found, "chains": chains * threads}


# --- peers -------------------------------------------------------------------------------------------


def dwave(problem: Problem, limit: float) -> Rate:
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    model = dimod.BinaryQuadraticModel(*quadratic(problem), "BINARY")
    sampler: Any = SimulatedAnnealingSampler()  # type: ignore[no-untyped-call, unused-ignore]
    sweeps = max(1, 10_000_000 // model.num_variables)  # long enough for the call itself to cost nothing

    def step() -> int:
        sampler.sample(model, num_reads=1, num_sweeps=sweeps, seed=1)
        return sweeps

    found = rate(step, limit)
    return {"atoms": found * problem.atoms, "units": found * model.num_variables, "chains": 1}


def machine_of(problem: Problem) -> tuple[Any, Any, Any]:
    """Return the theory's machine: weights, shape (atoms, hidden), visible and hidden biases, all dense."""
    from lbm.machine.translate import translate

    made = translate(problem.theory())
    parts = (made.weights.toarray(), made.visible_bias, made.hidden_bias)
    scale = CONFIDENCE / float(np.abs(parts[0]).max())  # weights of 1: only the speed matters here
    weights, visible, hidden = (np.ascontiguousarray(scale * np.asarray(part), np.float32) for part in parts)
    return weights, visible, hidden


def block_gibbs(problem: Problem, limit: float, make: Callable[..., Callable[[], object]]) -> Rate:
    """Return the best speed over numbers of chains; ``make(chains, *machine)`` gives one step of all."""
    parts = machine_of(problem)
    atoms, hidden = parts[0].shape
    best: Rate = {"atoms": 0.0}
    for chains in CHAINS:
        step = make(chains, *parts)

        def counted(step: Callable[[], object] = step) -> int:
            step()
            return 1

        steps = rate(counted, limit / len(CHAINS))
        if steps * chains * atoms > best["atoms"]:
            best = {
                "atoms": steps * chains * atoms,
                "units": steps * chains * (atoms + hidden),
                "chains": chains,
            }
    return best


def with_numpy(chains: int, weights: Any, visible: Any, hidden: Any) -> Callable[[], object]:
    rng = np.random.Generator(np.random.SFC64(0))
    x = (rng.random((chains, len(visible)), np.float32) < 0.5).astype(np.float32)
    back = np.ascontiguousarray(weights.T)

    def drawn(inputs: Any) -> Any:
        chance = 0.5 + 0.5 * np.tanh(0.5 * inputs)
        return (rng.random(inputs.shape, np.float32) < chance).astype(np.float32)

    def step() -> None:
        x[:] = drawn(drawn(x @ weights + hidden) @ back + visible)

    return step


def with_torch(chains: int, *parts: Any) -> Callable[[], object]:
    import torch

    weights, visible, hidden = map(torch.from_numpy, parts)
    x = torch.bernoulli(torch.full((chains, len(visible)), 0.5))

    def step() -> None:
        with torch.inference_mode():
            h = torch.bernoulli(torch.sigmoid(torch.addmm(hidden, x, weights)))
            x.copy_(torch.bernoulli(torch.sigmoid(torch.addmm(visible, h, weights.T))))

    return step


def with_sklearn(chains: int, weights: Any, visible: Any, hidden: Any) -> Callable[[], object]:
    from sklearn.neural_network import BernoulliRBM

    rbm = BernoulliRBM(n_components=len(hidden), random_state=0)
    rbm.components_ = np.ascontiguousarray(weights.T)
    rbm.intercept_hidden_, rbm.intercept_visible_ = hidden, visible
    x = [np.random.default_rng(0).random((chains, len(visible)), np.float32) < 0.5]

    def step() -> None:
        x[0] = rbm.gibbs(x[0].astype(np.float32))

    return step


BLOCK_GIBBS = {"numpy": with_numpy, "torch": with_torch, "scikit-learn": with_sklearn}


def measure(side: str, problem: Problem, threads: int, limit: float) -> Rate | None:
    """Return the speed of one side; None: it is not installed."""
    if side.startswith("lbm "):
        return lbm_updates(side.removeprefix("lbm "), problem, threads, limit)
    try:
        if side == "dwave":
            return dwave(problem, limit)
        if side == "torch":
            import torch

            torch.set_num_threads(threads)
        return block_gibbs(problem, limit, BLOCK_GIBBS[side])
    except ModuleNotFoundError as error:
        print(f"{side}: {error}", file=sys.stderr)
        return None


if __name__ == "__main__":
    name, atoms_, clauses_, threads_, seconds_ = sys.argv[1:]
    made = random_clauses(int(atoms_), int(clauses_), 3, seed=0, heaviest=10)
    print(json.dumps(measure(name, made, int(threads_), float(seconds_))))
