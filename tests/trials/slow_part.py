"""A part whose pieces take a while and know their own numbers, for runs that are stopped in the middle."""

import time

from lbm.trials.part import Piece, Section, Sheet
from lbm.trials.pictures import Chart, Curve

NAME = "slow"
TITLE = "Slow <pieces> & others"
REVISION = 1
ALONE = False
COLUMNS = {"number": int, "square": float, "word": str, "seconds": float}
PIECES = 8


def pieces(quick):
    return [Piece({"number": number}, cost=1.0, long=number == 3) for number in range(3 if quick else PIECES)]


def measure(key):
    number = key["number"]
    if number == 100:
        raise ArithmeticError("no\nsquare")
    begun = time.perf_counter()
    time.sleep(0.05)
    took = time.perf_counter() - begun
    return [
        {"number": number, "square": float(number**2) or None, "word": f"<b>{number}</b>, *", "seconds": took}
    ]


def draw(rows):
    x = tuple(float(row["number"]) for row in rows)
    return (
        [Chart("slow", "a < b & c", '"It\'s" rising.', "x", "y", (Curve("<i>", x, x, 0, x, x),))]
        if rows
        else []
    )


def section(rows):
    table = Sheet(
        "T <t>", ("n", "word"), tuple((str(row["number"]), str(row["word"])) for row in rows), left=(1,)
    )
    return Section(
        ("About <script>alert(1)</script> `x < y`.",), ("Found & kept.",), (table,), ("Note.",), {"n": 1.0}
    )


def is_time(column):
    """Return whether a column holds times, which differ from run to run."""
    return column == "seconds" or column.endswith("_seconds")
