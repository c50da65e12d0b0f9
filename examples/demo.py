"""The tour that ``make demo`` gives: formulae become machines, and machines answer questions and learn."""

from pathlib import Path

import lbm
from lbm import Machine, Theory, translate
from lbm.views.plots import draw

HERE = Path(__file__).parent
OUT = HERE.parent / "out"


def tell(name: str) -> Machine:
    theory = Theory.load(HERE / f"{name}.lbm")
    machine = translate(theory)
    print(f"\n{name}: {len(theory)} formulae over the atoms {', '.join(theory.atoms)}")
    print(theory)
    print(f"\n  {machine.hidden} hidden units, one per cube:")
    for number, unit in enumerate(machine.units, start=1):
        served = ", ".join(str(index + 1) for index in unit.formulae)
        print(f"    h{number:<2} {unit.weight:>6g}  {unit.cube!s:<14} of formula {served}")
    print(f"\n  {machine.equation()}")
    picture = OUT / f"{name}.svg"
    draw(machine, picture)
    print(f"  its picture: {picture.relative_to(HERE.parent)}")
    return machine


def ask(theory: Theory, query: str, given: str | None = None) -> None:
    print()
    for line in lbm.ask(theory, query, given=given, why=True).lines():
        print(f"  {line}")


def learn() -> None:
    print("\nTic-tac-toe: four of the eight rules, and every fifth of the 958 final boards to learn from")
    boards = lbm.datasets.tic_tac_toe()
    table, target = boards.table, boards.target
    few = table.iloc[::5], target.iloc[::5]
    known = lbm.LBMClassifier(knowledge=Theory(boards.rules[:4]), max_epochs=100, random_state=0).fit(*few)
    print(f"  right on {known.score(table, target):.1%} of all boards; why the first one is a win for x:")
    print("    " + known.explain(table.iloc[:1])[0].text(terms=2).replace("\n", "\n    "))
    rules = known.rules(table, target)
    print(f"  as rules, faithful to the machine on {rules.fidelity:.1%} of the boards:")
    for rule in rules.rules:
        print(f"    {rule.text}")


def relate() -> None:
    from lbm.training.relational.induce import Setting

    print("\nA family, told in the Prolog files of Aleph: who is a grandparent of whom?")
    setting = Setting(size=2, learning_rate=0.01, l2=0.05)
    found = lbm.induce(lbm.datasets.family(), folds=3, hidden=10, settings=[setting])
    mean, deviation = found.mean()
    print(f"  right on {mean:.1%} (s.d. {deviation:.1%}) of pairs not seen, in three folds; its rules:")
    for rule in found.rules:
        print(f"    {rule}")

    print("\nSix runners, four results, and three rules of any order: who is faster?")
    results = {"ex(ada, bob)": True, "ex(bob, cem)": True, "ex(dan, cem)": False, "ex(eve, ada)": True}
    asked = ["ex(eve, dan)", "ex(fay, cem)", "ex(bob, fay)"]
    for line in lbm.infer(HERE / "order.lbm", results, asked).lines():
        print(f"  {line}")


def main() -> None:
    OUT.mkdir(exist_ok=True)
    tell("xor")
    tell("nixon")

    print("\nThe Nixon diamond: Nixon is a Republican and a Quaker. Is he a pacifist?")
    nixon = Theory.load(HERE / "nixon.lbm")
    ask(nixon, "p", given="n")
    print("\nAnd if he is one, is he still a Republican?")
    ask(nixon, "r", given="n & p")
    best = lbm.best(nixon, given="n & p")
    broken = ", ".join(str(nixon.statements[number]) for number in best.broken)
    print(f"\n  the best such world loses {best.lost} of {best.satisfied + best.lost}: it breaks {broken}")

    print("\nModus tollens: the street is not slippery. Did it rain?")
    ask(Theory.load(HERE / "umbrella.lbm"), "rain")

    print("\nA map with three colours")
    colouring = Theory.load(HERE / "colouring.lbm")
    print(f"  {lbm.count(colouring)} ways to colour it; the one that keeps most wishes:")
    found = lbm.best(colouring)
    chosen = [name for name, true in found.world.items() if true]
    print(f"    {', '.join(chosen)}   ({found.said})")
    print(f"  ways that keep every wish: {lbm.count(colouring.all_hard())}")
    print("  how likely each colour is for the centre:")
    for name, chance in lbm.marginals(colouring).items():
        if "centre" in name:
            print(f"    {name:<20} {chance:.4f}")

    learn()
    relate()


if __name__ == "__main__":
    main()
