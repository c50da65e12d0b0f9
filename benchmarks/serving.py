"""The JSON interface under load: requests a second and how long they take, on loopback.

``lbm studio`` is started in a process of its own, and asked by 1, 8 and 32 clients at once, each with a
connection that it keeps: `/api/ask` (the Nixon diamond, a query and evidence) and, where the extra `train` is
installed, `/api/predict` (ten rows, a model that is trained first). Answers of ask are compared with what
Python says, those of predict with the first one. Each load ends after so many requests or seconds.

Then one worker is killed while eight clients ask: how many requests are lost (one at most, which it worked
on). With ``--requests 10000`` the last lines say how memory grows over that many.

    python benchmarks/serving.py [--seconds 5] [--requests 1000] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lbm
from lbm.views.studio.gallery import GALLERY

CLIENTS = (1, 8, 32)
NIXON = GALLERY["Nixon diamond"]
ASKED = {"theory": NIXON, "query": "p", "given": "n"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load, at most")
    parser.add_argument("--requests", type=int, default=1000, help="of each load, at most")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, rows = trained(Path(folder))
        with served(given.workers, model) as (pid, address):
            expected = lbm.ask(lbm.Theory.parse(NIXON), "p", given="n").facts()
            loads: list[tuple[str, Any, Callable[[Any], bool]]] = [
                ("ask", ASKED, lambda found: found == expected)
            ]
            if model is not None:
                body = {"model": "boards", "rows": rows}
                first = post(address, "predict", body)[1]
                loads.append(("predict", body, lambda found: found == first))
            print(f"{given.workers} workers, {os.cpu_count()} cores; times of clients in the same machine")
            print("path            clients  requests  a second    p50 ms    p99 ms  errors  CPU ms a request")
            for name, body, right in loads:
                post(address, name, body)  # what is loaded on first use is loaded
                for clients in CLIENTS:
                    used = cpu_seconds(pid)
                    took, errors, wall = load(address, name, body, right, clients, given)
                    used = (cpu_seconds(pid) - used) / max(1, len(took))
                    p50, p99 = (1000 * took[int(share * (len(took) - 1))] for share in (0.5, 0.99))
                    rate = len(took) / wall
                    print(
                        f"/api/{name:11}{clients:6}{len(took):10}{rate:10.0f}{p50:10.1f}{p99:10.1f}{errors:8}"
                        f"{1000 * used:10.1f}"
                    )
                    assert not errors
            print(f"a worker killed: {killed(address, pid, given)} of the requests of 8 clients lost")
            before = memory(pid)
            load(address, "ask", ASKED, loads[0][2], 8, given)
            print(f"memory of server and workers: {before:.0f} MB, then {memory(pid):.0f} MB")


def trained(folder: Path) -> tuple[Path | None, list[dict[str, Any]]]:
    """Return a model of a small table and ten rows of it; None: what trains is not installed."""
    if find_spec("torch") is None:
        return None, []
    boards = lbm.datasets.tic_tac_toe()
    model = lbm.LBMClassifier(hidden=10, random_state=0).fit(boards.table[:200], boards.target[:200])
    lbm.save(model, folder / "boards.model")
    return folder / "boards.model", json.loads(boards.table[:10].to_json(orient="records"))


@contextmanager
def served(workers: int, model: Path | None) -> Iterator[tuple[int, str]]:
    """Give a server's process and address."""
    options = ["--no-browser", "--port", "18100", "--workers", str(workers)]
    options += [] if model is None else ["--model", f"boards={model}"]
    command = [sys.executable, "-m", "lbm", "studio", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[2].removeprefix("http://")
            yield process.pid, address
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def post(address: str | HTTPConnection, name: str, body: Any) -> tuple[int, Any]:
    """Return status and body of one answer."""
    line = address if isinstance(address, HTTPConnection) else HTTPConnection(address, timeout=60)
    line.request("POST", f"/api/{name}", json.dumps(body), {"Content-Type": "application/json"})
    answer = line.getresponse()
    return answer.status, json.loads(answer.read())


def load(
    address: str, name: str, body: Any, right: Callable[[Any], bool], clients: int, given: argparse.Namespace
) -> tuple[list[float], int, float]:
    """Return how long each request took, sorted, how many went wrong, and how long all took."""
    took: list[float] = []
    wrong: list[Any] = []
    begun, lock = time.perf_counter(), threading.Lock()
    left = given.requests

    def client() -> None:
        nonlocal left
        line = HTTPConnection(address, timeout=60)
        while time.perf_counter() < begun + given.seconds:
            with lock:
                left -= 1
                if left < 0:
                    return
            start = time.perf_counter()
            status, found = post(line, name, body)
            took.append(time.perf_counter() - start)
            if status != 200 or not right(found):
                wrong.append(found)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(took), len(wrong), time.perf_counter() - begun


def killed(address: str, pid: int, given: argparse.Namespace) -> int:
    """Return how many requests are lost where a worker is killed in the middle."""
    victim = children(pid)[0]
    timer = threading.Timer(min(0.5, given.seconds / 2), os.kill, [victim, signal.SIGKILL])
    timer.start()
    _, wrong, _ = load(address, "ask", ASKED, lambda found: "error" not in found, 8, given)
    timer.join()
    assert wrong <= 1
    return wrong


def children(pid: int) -> list[int]:
    """Return the processes that a process has begun."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_seconds(pid: int) -> float:
    """Return the seconds of processors that a server and its workers have used."""
    found = 0
    for each in (pid, *children(pid)):
        parts = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        found += int(parts[11]) + int(parts[12])
    return found / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return the megabytes that a server and its workers hold."""
    kilobytes = 0
    for each in (pid, *children(pid)):
        for line in Path(f"/proc/{each}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                kilobytes += int(line.split()[1])
    return kilobytes / 1000


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("serving.py reads /proc: run it on Linux")
    main()
