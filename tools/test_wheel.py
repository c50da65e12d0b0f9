"""Test what users install: the built wheel, first alone, then with the test suite from the sdist.

    python tools/test_wheel.py dist

In an empty environment, with the versions of requirements.lock, and in a directory that holds no src/:
the base install answers on the command line, loads nothing heavy on import, and names what is missing when
asked for a picture; then the tests of its commands pass against the installed package.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path
from shutil import rmtree

HEAVY = ("dd", "joblib", "matplotlib", "numba", "numpy", "pysat", "scipy", "sklearn", "torch")


def main() -> None:
    """Test the one wheel and the one sdist of the directory given as argument."""
    dist = Path(sys.argv[1]).resolve()
    [wheel], [sdist] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary).resolve()
        tree = unpack(sdist, directory)
        installed = Installed(directory / "venv", tree)
        heading(f"{wheel.name}: base install")
        installed.pip(str(wheel))
        check_base(installed, version=wheel.name.split("-")[1])
        heading(f"{wheel.name}: its tests")
        installed.pip(f"{wheel}[plots,test]")
        check_suite(installed)


def unpack(sdist: Path, directory: Path) -> Path:
    """Unpack the sdist without its src/, so that only the wheel can provide the package."""
    with tarfile.open(sdist) as archive:
        archive.extractall(directory, filter="data")
    tree = directory / sdist.name.removesuffix(".tar.gz")
    rmtree(tree / "src")
    return tree


class Installed:
    """An empty environment to install the wheel in, and the tree to run commands from."""

    def __init__(self, place: Path, tree: Path) -> None:
        venv.create(place, with_pip=True)
        self.tree = tree
        self.bin = place / ("Scripts" if sys.platform == "win32" else "bin")
        hidden = ("PYTHONPATH", "VIRTUAL_ENV")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment |= {"PYTHONUTF8": "1", "HYPOTHESIS_PROFILE": "quick"}

    def pip(self, *requirements: str) -> None:
        """Install, at the locked versions."""
        lock = self.tree / "requirements.lock"
        self.run("python", "-m", "pip", "install", "-qq", "-c", str(lock), *requirements, capture=False)

    def run(self, program: str, *arguments: str, status: int = 0, capture: bool = True) -> tuple[str, str]:
        """Run a program of the environment; return what it wrote, or stop when its status is another."""
        done = subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.tree,
            env=self.environment,
            capture_output=capture,
            encoding="utf-8",
            check=False,
        )
        said = " ".join([program, *arguments])
        if done.returncode != status:
            sys.exit(f"{said}: exit {done.returncode}, not {status}\n{done.stdout or ''}{done.stderr or ''}")
        if capture:
            print(f"ok: {said.splitlines()[0][:90]}")
        return done.stdout or "", done.stderr or ""


def check_base(installed: Installed, version: str) -> None:
    """Check what the base install promises."""
    expect(version in installed.run("lbm", "--version")[0], f"lbm --version names {version}")
    expect(version in installed.run("python", "-m", "lbm", "--version")[0], f"python -m lbm names {version}")
    expect(installed.run("lbm", "compile", "examples/nixon.lbm")[0].strip(), "compile prints the machine")

    script = f"import sys, lbm; print(lbm.__file__); print(*sorted(set(sys.modules) & set({HEAVY!r})))"
    origin, heavy = installed.run("python", "-c", script)[0].splitlines()
    expect(Path(origin).is_relative_to(installed.bin.parent), "the package is the installed one", origin)
    expect(not heavy, "import lbm loads nothing heavy", heavy)
    for file in ("py.typed", "knowledge/grammar.lark"):
        expect((Path(origin).parent / file).is_file(), f"the wheel carries {file}")

    picture = installed.tree / "x.svg"
    _, said = installed.run("lbm", "draw", "examples/nixon.lbm", "-o", str(picture), status=2)
    expect(len(said.splitlines()) == 1, "a missing extra is reported in one line", said)
    named = "pip install" in said and "logical-boltzmann[plots]" in said
    expect(named, "the line gives the command that installs it", said)
    expect(not picture.exists(), "no picture is left behind")


def check_suite(installed: Installed) -> None:
    """Run tests of the sdist against the installed package: those of commands and of files.

    A wheel can lack a file or a dependency; whether answers are right was tested where it was built.
    """
    tests = ["tests/views/test_commands.py", "tests/views/test_entry.py", "tests/machine/test_store.py"]
    installed.run("python", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests, capture=False)


def expect(truth: object, sentence: str, found: str = "") -> None:
    """Print the sentence if it holds, else stop with it."""
    if not truth:
        sys.exit(f"not so: {sentence}" + (f"\nfound: {found}" if found else ""))
    print(f"ok: {sentence}")


def heading(text: str) -> None:
    """Print a heading, at once."""
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    main()
