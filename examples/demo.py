"""The tour that ``make demo`` gives: formulae become machines, with their cubes, energies and pictures."""

from itertools import product
from pathlib import Path

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


def main() -> None:
    OUT.mkdir(exist_ok=True)
    tell("xor")
    nixon = tell("nixon")

    print("\nWhat the Nixon machine makes of n: the weight that each world keeps, best first")
    worlds = [{"n": True, "r": r, "q": q, "p": p} for r, q, p in product([True, False], repeat=3)]
    for world in sorted(worlds, key=lambda world: -nixon.score(world))[:4]:
        values = " ".join(f"{name}={value:d}" for name, value in world.items())
        print(f"    {values}   {nixon.score(world):g}")


if __name__ == "__main__":
    main()
