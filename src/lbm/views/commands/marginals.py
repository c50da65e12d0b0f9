"""``lbm marginals``: how likely is every atom?"""

from __future__ import annotations

from dataclasses import asdict

from lbm.views.commands import evidence, shared


def list_marginals(
    file: shared.File,
    *,
    given: shared.Given = None,
    rows: shared.Rows = None,
    out: shared.Answers = None,
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

    With --rows the answer is CSV, a column an atom and a line for each row of evidence: nan where the row is
    impossible. What rows say is what they say to lbm ask.

    With --json: marginals and intervals (by atom; no intervals where they are exact), method, distribution,
    temperature, confidence, converged, effective_size, r_hat, missed, chains, sweeps, note.

    With --rows and --json: atoms, rows, impossible (how many), marginals (a list for each row, null where it
    is impossible; none if they go to a file), method, distribution, temperature, confidence.
    """
    shared.check_form(form, as_json)
    options = {**asdict(weighing), **asdict(effort)}
    if rows is not None or out is not None:
        evidence.check_plain(file, rows, out, given=given, form=form, method=method, **options)
        theory = reading.theory(file)
        evidence.answer_rows(theory, None, rows, out, effort.seconds, weighing.temperature, as_json)
        return 0
    network, theory = (None, reading.theory(file)) if form is None else reading.network(file)
    from lbm.reasoning.reasoner import marginals

    with shared.working("looking for the probabilities"):
        found = marginals(theory, given=given, method=method, seed=seed, **options)
    if network is None:
        shared.tell(found, as_json)
    else:
        from lbm.knowledge.networks import mar_lines

        shared.say_each(mar_lines(network.chances(found)))
        if found.method != "exact":
            shared.remark(*found.lines()[len(found) :])
    return 0 if found.converged else 3
