"""``lbm count``: how many worlds satisfy every hard formula?"""

from __future__ import annotations

from lbm.views.commands import options, streams


def count_models(
    file: options.File,
    given: options.Given = None,
    project: options.Project = None,
    seconds: options.Seconds = 60.0,
    soft_as_hard: options.SoftAsHard = False,
    lenient: options.Lenient = False,
    as_json: options.Json = False,
) -> int:
    """Count the models of a theory, exactly, however many there are.

    Exit status 0: there is one at least; 1: there is none; 3: the count would take too long.

    With --json: count, as text, because it may be larger than a program's numbers.
    """
    theory = streams.read_theory(file, lenient=lenient, soft_as_hard=soft_as_hard)
    from lbm.knowledge.numbers import written
    from lbm.reasoning.reasoner import count

    with streams.working("counting"):
        number = count(theory, given=given, project=options.split_names(project), seconds=seconds)
    if as_json:
        streams.say_json({"count": written(number)})
    else:
        streams.say(written(number))
    return 0 if number else 1
