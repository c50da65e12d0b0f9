"""``lbm count``: how many worlds satisfy every hard formula?"""

from __future__ import annotations

from lbm.views.commands import shared


def count_models(
    file: shared.File,
    *,
    given: shared.Given = None,
    project: shared.Project = None,
    seconds: shared.Seconds = 60.0,
    reading: shared.TheoryOptions,
    as_json: shared.Json = False,
) -> int:
    """Count the models of a theory, exactly, however many there are.

    Exit status 0: there is one at least; 1: there is none; 3: the count would take too long.

    With --json: count, as text, because it may be larger than a program's numbers.
    """
    theory = reading.theory(file)
    from lbm.knowledge.numbers import written
    from lbm.reasoning.reasoner import count

    with shared.working("counting"):
        number = count(theory, given=given, project=shared.split_names(project), seconds=seconds)
    if as_json:
        shared.say_json({"count": written(number)})
    else:
        shared.say(written(number))
    return 0 if number else 1
