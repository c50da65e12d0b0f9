"""``lbm compile``: which machine does this theory become?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from lbm.errors import FileError
from lbm.knowledge.printed import counted
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.machine.rbm import Machine


def compile_theory(
    file: shared.File,
    output: Annotated[
        str | None,
        Option(
            "-o",
            "--output",
            metavar="MACHINE",
            help="Save the machine; as .qubo or .ising, its coefficients for dimod.",
        ),
    ] = None,
    *,
    translation: shared.MachineOptions,
    latex: Annotated[bool, Option("--latex", help="Write the energy function as LaTeX.")] = False,
    everything: Annotated[bool, Option("--all", help="Print every unit, however many.")] = False,
    reading: shared.FileOptions,
    as_json: shared.Json = False,
) -> None:
    """Turn a theory into a machine: its atoms, its hidden units, its energy function.

    Each hidden unit is shown with its weight, the numbers of the formulae it serves, and its cube. Of
    more than 60 units the first 20 are shown, unless --all is given.

    With --json: atoms and definitions (names), epsilon, calibrated (how many hidden units are), hard_weight,
    offset, formulae (text, weight, line), units (cube as text, literals as [atom, sign], weight, bias,
    formulae as positions from 0, definitions), visible_bias, energy (null past a million weights), output.
    Weights are numbers where a double holds them as written, otherwise text; null for a hard formula.
    """
    _check_output(file, output)
    theory = reading.theory(file)
    with shared.working("compiling"):
        machine = translation.machine(theory)
        if output is not None:
            _save(machine, output)
    if as_json:
        shared.say_json({**machine_facts(machine, latex), "output": output})
        return
    shared.say_each(_lines(machine, latex, everything))
    if output is not None:
        shared.say(f"written to {output}")


def _check_output(file: str, output: str | None) -> None:
    if output == "-":
        raise typer.BadParameter("a machine needs a file to be saved in", param_hint="'-o'")
    try:
        same = output is not None and file != "-" and Path(file).samefile(output)
    except (OSError, ValueError):  # one of them is not there
        same = False
    if same:
        raise FileError(f"cannot write {output}: it is the theory to compile")


def _save(machine: Machine, output: str) -> None:
    form = Path(output).suffix.lower().lstrip(".")
    if form in ("qubo", "ising"):
        from lbm.machine.spins import write_spins

        write_spins(machine, output, form=form)
    else:
        from lbm.machine.store import save

        save(machine, output)


# --- for programs --------------------------------------------------------------------------------


def machine_facts(machine: Machine, latex: bool = False) -> dict[str, Any]:
    """Return a machine as plain data for JSON; formulae and units as iterators."""
    from lbm.knowledge.numbers import plain
    from lbm.machine.equation import MAX_TERMS

    theory = machine.theory
    assert theory is not None
    return {
        "atoms": machine.declared,
        "definitions": machine.definitions,
        "epsilon": machine.epsilon,
        "calibrated": machine.calibrated,
        "hard_weight": plain(machine.hard_weight),
        "offset": plain(machine.offset),
        "formulae": ({"text": str(s.formula), "weight": plain(s.weight), "line": s.line} for s in theory),
        "units": (
            {
                "cube": str(unit.cube),
                "literals": unit.cube.literals,
                "weight": plain(unit.weight),
                "bias": plain(unit.bias),
                "formulae": unit.formulae,
                "definitions": unit.definitions,
            }
            for unit in machine.units
        ),
        "visible_bias": [plain(bias) for bias in machine.visible_bias.tolist()],
        "energy": machine.equation(latex=latex) if machine.weights.nnz <= MAX_TERMS else None,
    }


# --- for people ----------------------------------------------------------------------------------


def _lines(machine: Machine, latex: bool, everything: bool) -> Iterator[str]:
    from lbm.knowledge.formula import quote
    from lbm.knowledge.printed import how_many_listed, table
    from lbm.knowledge.theory import statement_shown
    from lbm.machine.equation import MAX_TERMS, number

    theory = machine.theory
    assert theory is not None
    hard, soft = shared.count_statements(theory)
    for names, what in ((machine.declared, "atom"), (machine.definitions, "definitional atom")):
        if names or what == "atom":
            shown = how_many_listed(names, everything)
            more = f", and {len(names) - shown:,} more" if shown < len(names) else ""
            yield f"{counted(len(names), what)}: {', '.join(map(quote, names[:shown]))}{more}"

    yield shared.formulae_counted(hard, soft)
    shown = how_many_listed(theory.statements, everything)
    numbered = enumerate(islice(theory, shown), start=1)
    yield from table(((str(i), statement_shown(s)) for i, s in numbered), right=(0,))
    if shown < len(theory):
        yield f"  and {len(theory) - shown:,} more"
    if hard and soft:
        yield f"a hard formula weighs {number(machine.hard_weight)}"
    if machine.offset:
        yield f"offset {number(machine.offset)}"

    yield f"{counted(machine.hidden, 'hidden unit')}, {machine.kind}"
    shown = how_many_listed(machine.units, everything)
    yield from table(_unit_rows(machine, shown), right=(1,))
    if shown < machine.hidden:
        yield f"  and {machine.hidden - shown:,} more: --all prints them, -o saves the machine"
    yield f"energy function of {counted(machine.weights.nnz, 'weight')}"
    if machine.weights.nnz > MAX_TERMS:
        yield f"  too long to write out: it has more than {MAX_TERMS:,} weights (limit MAX_TERMS)"
    elif shown < machine.hidden:
        yield "  --all prints it"
    else:
        yield f"  {machine.equation(latex=latex)}"


def _unit_rows(machine: Machine, shown: int) -> Iterator[tuple[str, str, str, str]]:
    from lbm.machine.equation import number

    yield "unit", "weight", "formulae", "cube"
    for j, unit in enumerate(islice(machine.units, shown), start=1):
        serves = [str(formula + 1) for formula in unit.formulae] + [
            f"def {name}" for name in unit.definitions
        ]
        if len(serves) > 4:
            serves = [*serves[:3], f"{len(serves) - 3} more"]
        yield f"h{j}", number(unit.weight), ", ".join(serves), str(unit.cube)
