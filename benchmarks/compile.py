"""Files to machines: a million clauses beside PySAT's reader, 100,000 lines beside sympy's parser.

Both sides are timed in this run, on the same work, each in a process of its own: CPU seconds, best of three.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

CLAUSES, ATOMS, LINES = 1_000_000, 250_000, 100_000

# Each side is a program of its own, so that neither inherits the other's memory.
PREAMBLE = """
import json, resource, sys, time
def report(start):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": time.process_time() - start, "peak": peak}))
path = sys.argv[1]
"""
PYSAT = """
from pysat.formula import CNF
start = time.process_time()
CNF(from_file=path)
report(start)
"""
MACHINE = """
import lbm.knowledge.wire, lbm.machine.translate, scipy.sparse
start = time.process_time()
machine = lbm.translate(lbm.Theory.load(path))
report(start)
"""
LBM_TEXT = """
import lbm.knowledge.theory
start = time.process_time()
lbm.Theory.parse(open(path, encoding="utf-8").read())
report(start)
"""
SYMPY = """
from sympy.parsing.sympy_parser import parse_expr
from sympy import Symbol
names = {f"x{i}": Symbol(f"x{i}") for i in range(1000)}
lines = open(path, encoding="utf-8").read().splitlines()
start = time.process_time()
for line in lines:
    parse_expr(line, local_dict=names)
report(start)
"""


def write_cnf(path: Path, clauses: int, atoms: int) -> None:
    rng = random.Random(0)
    with path.open("w", encoding="ascii") as file:
        file.write(f"p cnf {atoms} {clauses}\n")
        for _ in range(clauses):
            chosen = rng.sample(range(1, atoms + 1), 3)
            file.write(" ".join(str(atom if rng.random() < 0.5 else -atom) for atom in chosen) + " 0\n")


def write_lines(path: Path, lines: int) -> None:
    """Write formulae that our text format and sympy both read, and read alike."""
    rng = random.Random(0)
    with path.open("w", encoding="ascii") as file:
        for _ in range(lines):
            a, b, c, d = (f"x{rng.randrange(1000)}" for _ in range(4))
            shapes = [f"{a} & {b} & ~{c} | {d}", f"({a} | ~{b}) & ({c} | {d})", f"~({a} & {b}) | {c} & ~{d}"]
            file.write(rng.choice(shapes) + "\n")


def measure(program: str, path: Path, repeat: int = 3) -> dict[str, float]:
    runs = []
    for _ in range(repeat):
        done = subprocess.run(
            [sys.executable, "-c", PREAMBLE + program, str(path)], capture_output=True, text=True, check=True
        )
        runs.append(json.loads(done.stdout))
    return min(runs, key=lambda run: run["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    scale = 10 if parser.parse_args().quick else 1
    with tempfile.TemporaryDirectory() as folder:
        cnf = Path(folder) / "random.cnf"
        write_cnf(cnf, CLAUSES // scale, ATOMS // scale)
        peer, ours = measure(PYSAT, cnf), measure(MACHINE, cnf)
        print(f"random 3-CNF, {CLAUSES // scale:,} clauses over {ATOMS // scale:,} atoms")
        print(f"  pysat.formula.CNF, reading only    {peer['seconds']:7.2f} s   peak {peer['peak']:5.2f} GiB")
        print(f"  lbm, from file to machine          {ours['seconds']:7.2f} s   peak {ours['peak']:5.2f} GiB")
        print(f"  ratio lbm / pysat                  {ours['seconds'] / peer['seconds']:7.2f}   (at most 3)")

        lines, more = Path(folder) / "lines.lbm", Path(folder) / "more.lbm"
        write_lines(lines, LINES // scale)
        write_lines(more, 10 * LINES // scale)
        peer, ours = measure(SYMPY, lines, repeat=1), measure(LBM_TEXT, lines)
        tenfold = measure(LBM_TEXT, more, repeat=1)
        print(f"text, {LINES // scale:,} lines")
        print(f"  sympy.parse_expr                   {peer['seconds']:7.2f} s")
        print(f"  lbm.Theory.parse                   {ours['seconds']:7.2f} s")
        gain, growth = peer["seconds"] / ours["seconds"], tenfold["seconds"] / ours["seconds"]
        print(f"  ratio sympy / lbm                  {gain:7.1f}   (at least 15)")
        print(f"  ten times the lines                {tenfold['seconds']:7.2f} s")
        print(f"  ratio ten times / once             {growth:7.1f}   (at most 12)")


if __name__ == "__main__":
    main()
