"""The process in which questions of other programs are answered, one after the other.

Run as ``python -m lbm.views.studio.worker`` it reads questions from standard input, a line of JSON each, and
writes a line of JSON for each answer: ``status``, that of the command line, and ``body``, what was found or
what is wrong. It ends with its caller, however that ends, and with its standard input.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, Final

MAX_ANSWER: Final = 8 << 20
"""Characters of an answer."""


def reply_to(name: str, said: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the exit status of a question and its answer: facts, or one line that says what is wrong."""
    from lbm.errors import LbmError, LimitExceeded
    from lbm.views.studio.questions import answer

    try:
        facts = answer(name, said)
        if len(written(facts)) > MAX_ANSWER:
            raise LimitExceeded(
                f"the answer is longer than {MAX_ANSWER:,} characters (limit MAX_ANSWER): "
                "ask for less, or ask the command line",
                MAX_ANSWER=MAX_ANSWER,
            )
    except LbmError as error:
        return error.exit_status, refusal(error)
    except MemoryError:
        return 3, {
            "error": "no answer within the memory that a question may use (LBM_MEMORY, 4G if it is not set)",
            "kind": "MemoryError",
        }
    except Exception as error:  # noqa: BLE001 - whoever asked hears of a bug, and the worker goes on
        if os.environ.get("LBM_DEBUG"):
            import traceback

            traceback.print_exception(error)
        what = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        return 2, {"error": f"a bug in lbm, please report it: {what}", "kind": "bug"}
    return (1 if facts.get("answer") is False else 0), facts


def refusal(error: Exception) -> dict[str, Any]:
    """Return an error of ours as plain data: its line, its kind, and the parts that a program can use."""
    from lbm.errors import LbmError
    from lbm.views.entry import one_line

    line = error.one_line() if isinstance(error, LbmError) else str(error)
    parts = ("line", "column", "limit", "name")
    known = {part: getattr(error, part) for part in parts if getattr(error, part, None) is not None}
    return {"error": one_line(line), "kind": type(error).__name__, **known}


def written(facts: dict[str, Any]) -> str:
    """Return plain data as JSON on one line; iterators inside become lists."""
    return json.dumps(facts, ensure_ascii=True, allow_nan=False, default=_listed)


def _listed(value: object) -> list[Any]:
    if isinstance(value, Iterator | tuple | set | frozenset):
        return list(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def main() -> None:
    """Answer questions until standard input closes."""
    caller, models = int(sys.argv[1]), json.loads(sys.argv[2])
    questions, answers = _streams()
    end_with(caller)
    from lbm.errors import LbmError
    from lbm.views import entry
    from lbm.views.studio import questions as table

    with suppress(LbmError):  # whoever started us has said so
        entry.bound_memory()
    table.models_allowed.update(models)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while line := questions.readline():
            waiting.put(line)
        os._exit(0)  # our caller has gone, and nobody is left to hear the answer

    threading.Thread(target=read, daemon=True).start()
    warm()
    _tell(answers, {"ready": True})
    while True:
        asked = json.loads(waiting.get())
        status, body = reply_to(asked["ask"], asked["said"])
        _tell(answers, {"number": asked["number"], "status": status, "body": body})


def warm() -> None:
    """Ask one of everything that is asked often, so that nobody waits for what is loaded then."""
    from lbm.views.studio.questions import QUESTIONS, answer

    for name, said in (
        ("check", {}),
        ("ask", {"query": "b", "why": True}),
        ("best", {}),
        ("marginals", {}),
        ("compile", {}),
    ):
        answer(name, QUESTIONS[name].read({"theory": "1: a -> b\na | b", **said}))


def _tell(answers: IO[bytes], said: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # nobody hears it: standard input is closed too
        answers.write(written(said).encode() + b"\n")
        answers.flush()


def _streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return where questions come from and answers go; what others print goes to standard error."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return questions, answers


def end_with(caller: int) -> None:
    """Have the system end this process when its caller ends, killed or not, where it knows how to (Linux).

    Elsewhere the end of standard input does so, as soon as Python gets to read it.
    """
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != caller:
            os._exit(0)


if __name__ == "__main__":
    main()
