"""Run the notebooks of docs/ and keep what they print, or check that they still print it.

    python tools/notebooks.py            # run, and write the outputs back
    python tools/notebooks.py --check    # run, and compare: exit 1 if a text differs from the stored one

Each runs in a fresh kernel, in its own directory. Pictures are not compared: their bytes depend on fonts.
A cell that fails, writes to standard error, or puts out the name of a directory of this machine is an error.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "notebooks"
SECONDS = 120  # for one cell

PLACES = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR")

LINK = re.compile(r"\]\(([^)#\s]+)")
COMPARED = ("text/plain", "text/html")

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def main() -> None:
    """Run every notebook; exit 1 if one fails or, when checking, prints something new."""
    parser = argparse.ArgumentParser(description="Run the notebooks of docs/ and write their outputs back.")
    parser.add_argument("--check", action="store_true", help="compare with the stored outputs instead")
    check = parser.parse_args().check
    paths = sorted(FOLDER.glob("*.ipynb"))
    if not paths:
        sys.exit(f"notebooks.py: no notebook in {FOLDER.relative_to(ROOT)}")
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        stay_inside(Path(directory))
        for path in paths:
            begun = time.monotonic()
            stored = nbformat.read(path, as_version=4)
            fresh, faults = run(stored)
            if check and not faults:
                faults = list(differences(stored, fresh))
            for fault in faults:
                print(f"{path.relative_to(ROOT)}, {fault}")
            if not check and not faults:
                write(fresh, path)
            wrong += bool(faults)
            said = "NOT ok" if faults else "ok" if check else "written"
            print(f"{said}: {path.relative_to(ROOT)}, {time.monotonic() - begun:.1f} s", flush=True)
    if wrong:
        hint = "; if the new outputs are right: python tools/notebooks.py" if check else ""
        sys.exit(f"notebooks.py: {wrong} of {len(paths)} notebooks not ok{hint}")


def stay_inside(directory: Path) -> None:
    """Make a directory the only place where kernels and their libraries keep files of their own."""
    for name in PLACES:
        os.environ[name] = str(directory / name.lower())
        (directory / name.lower()).mkdir()
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH", "MPLBACKEND", "PYTHONSTARTUP"):
        os.environ.pop(name, None)  # the kernel of this environment, and pictures inside the notebook
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # nobody debugs here: no warning that it would be hard
    # The first import lists the fonts, and says so on standard error where that is slow: not in a cell, then.
    subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], capture_output=True, check=True)


def run(stored: NotebookNode) -> tuple[NotebookNode, list[str]]:
    """Return the notebook with the outputs of a fresh run and no other traces of it, and what went wrong."""
    fresh = deepcopy(stored)
    for cell in code_cells(fresh):
        cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        fresh,
        timeout=SECONDS,
        kernel_name="python3",
        record_timing=False,
        config=sockets(),
        resources={"metadata": {"path": str(FOLDER)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        return fresh, [f"{last_run(fresh)}: {error.ename}: {error.evalue}"]
    except (CellTimeoutError, DeadKernelError) as error:
        return fresh, [f"{last_run(fresh)}: {error}"]
    fresh.metadata = NotebookNode(deepcopy(METADATA))
    for cell in fresh.cells:
        cell.metadata = NotebookNode({name: value for name, value in cell.metadata.items() if name == "tags"})
    for cell in code_cells(fresh):
        for output in cell.outputs:
            if "metadata" in output:
                output.metadata = NotebookNode()
        cell.outputs = joined(cell.outputs)
    return fresh, list(faults_of(fresh))


def sockets() -> Config:
    """Return how to talk to a kernel: by files, since one that listens on a port warns of eavesdroppers."""
    if sys.platform == "win32":
        return Config()
    return Config(
        {"KernelManager": {"transport": "ipc", "ip": str(Path(os.environ["JUPYTER_RUNTIME_DIR"], "ipc"))}}
    )


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the cells that are run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def last_run(notebook: NotebookNode) -> str:
    """Name the cell that the run came to: the last one that has a number or printed something."""
    cells = code_cells(notebook)
    reached = [i for i, cell in enumerate(cells, start=1) if cell.execution_count or cell.outputs]
    return called(cells, max(reached, default=1))


def called(cells: list[NotebookNode], number: int) -> str:
    """Name a cell by its number among those that are run, and its first line."""
    first = cells[number - 1].source.strip().partition("\n")[0]
    return f"cell {number} ({first})"


def faults_of(fresh: NotebookNode) -> Iterator[str]:
    """Yield what no notebook of ours may have: warnings, places on this machine, links that lead nowhere."""
    named = {str(ROOT), os.path.expanduser("~"), sys.prefix, tempfile.gettempdir()}  # noqa: PTH111 - needs no home
    places = sorted(place for place in named if Path(place).is_absolute() and place != os.sep)
    cells = code_cells(fresh)
    for number, cell in enumerate(cells, start=1):
        for kind, text in texts(cell):
            if kind == "stderr":
                yield f"{called(cells, number)} writes to standard error:\n{text.rstrip()}"
            for place in places:
                if place in text:
                    yield f"{called(cells, number)} prints the directory {place}"
    text = "\n".join(cell.source for cell in fresh.cells if cell.cell_type == "markdown")
    for link in LINK.findall(text):
        # A page of the site is linked by its name there: the site is built without looking into notebooks.
        page = FOLDER / link
        sources = [page.with_suffix(ending) for ending in (".md", ".ipynb")]
        if "://" not in link and not (page.suffix == ".html" and any(source.exists() for source in sources)):
            yield f"link to {link}: expected the .html of a page of docs/"


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs with neighbours of one stream as one: where a kernel cuts it is chance."""
    found: list[NotebookNode] = []
    for output in outputs:
        stream = output.output_type == "stream"
        if stream and found and found[-1].output_type == "stream" and found[-1].name == output.name:
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def texts(cell: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield the texts a cell puts out, each after its kind."""
    for output in joined(deepcopy(cell.outputs)):
        if output.output_type == "stream":
            yield output.name, output.text
        elif output.output_type == "error":
            yield "error", f"{output.ename}: {output.evalue}"
        else:
            yield from ((kind, output.data[kind]) for kind in COMPARED if kind in output.data)


def differences(stored: NotebookNode, fresh: NotebookNode) -> Iterator[str]:
    """Yield the cells whose text is not the stored one, and how it differs."""
    cells = code_cells(fresh)
    for number, (old, new) in enumerate(zip(code_cells(stored), cells, strict=True), start=1):
        before, after = as_lines(texts(old)), as_lines(texts(new))
        if before != after:
            lines = list(difflib.unified_diff(before, after, "stored", "now", lineterm="", n=1))
            yield "\n".join([f"{called(cells, number)} prints something else:", *lines])
    if dict(stored.metadata) != METADATA:
        yield "its metadata are not those that this tool writes"


def as_lines(found: Iterable[tuple[str, str]]) -> list[str]:
    """Return texts as lines, each with its kind, so that the same words in another place are a difference."""
    return [f"{kind}: {line}" for kind, text in found for line in text.splitlines()]


def write(notebook: NotebookNode, path: Path) -> None:
    """Replace the file in one step."""
    nbformat.validate(notebook)
    new = path.with_suffix(".new")
    new.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")
    new.replace(path)


if __name__ == "__main__":
    main()
