"""``lbm marginals``: how likely is every atom?"""

from __future__ import annotations

from dataclasses import asdict

from lbm.views.commands import shared


def list_marginals(
    file: shared.File,
    *,
    given: shared.Given = None,
    weighing: shared.DistributionOptions,
    method: shared.Chosen = "auto",
    effort: shared.EffortOptions,
    reading: shared.TheoryOptions,
    form: shared.Form = None,
    as_json: shared.Json = False,
    seed: shared.Seeded = None,
) -> int:
    """Print the probability of every atom given evidence, all in one pass.

    With --form uai, those of all values of every variable of a network, in one line behind a line MAR.

    Exit status 0: there they are; 1: no world satisfies the evidence and the hard formulae; 3: chains did not
    agree.

    With --json: marginals and intervals (by atom; no intervals where they are exact), method, distribution,
    temperature, confidence, converged, effective_size, r_hat, missed, chains, sweeps, note.
    """
    shared.check_form(form, as_json)
    network, theory = (None, reading.theory(file)) if form is None else reading.network(file)
    from lbm.reasoning.reasoner import marginals

    with shared.working("looking for the probabilities"):
        options = {**asdict(weighing), **asdict(effort)}
        found = marginals(theory, given=given, method=method, seed=seed, **options)
    if network is None:
        shared.tell(found, as_json)
    else:
        from lbm.knowledge.networks import mar_lines

        shared.say_each(mar_lines(network.chances(found)))
        if found.method != "exact":
            shared.remark(*found.lines()[len(found) :])
    return 0 if found.converged else 3
