"""The command line: one file per question, put together here.

Commands import what they need when they run, so that ``lbm --help`` waits for none of it. A command
returns its exit status; nothing returned is 0.
"""

from __future__ import annotations

from lbm.views.commands.ask import ask_query
from lbm.views.commands.best import best_world
from lbm.views.commands.check import check_theory
from lbm.views.commands.compile import compile_theory
from lbm.views.commands.convert import convert_theory
from lbm.views.commands.count import count_models
from lbm.views.commands.draw import draw_machine
from lbm.views.commands.entails import entails_query
from lbm.views.commands.induce import induce_rules
from lbm.views.commands.measure import log_partition_of, log_probability_of
from lbm.views.commands.models import list_models
from lbm.views.commands.predict import predict_rows
from lbm.views.commands.reproduce import reproduce_paper
from lbm.views.commands.rules import extract_theory
from lbm.views.commands.sample import sample_worlds
from lbm.views.commands.saturate import saturate_examples
from lbm.views.commands.shared import app, unseeded
from lbm.views.commands.train import train_model
from lbm.views.commands.warm import warm_kernels

__all__ = ["app"]

app.command("compile", short_help="The machine a theory becomes: units and energy.")(unseeded(compile_theory))
app.command("check", short_help="Its size; satisfiable, or which formulae clash.")(unseeded(check_theory))
app.command("ask", short_help="How likely is a formula, and is it settled?")(ask_query)
app.command("entails", short_help="Does a formula follow, and why?")(unseeded(entails_query))
app.command("best", short_help="The world that loses the least weight.")(best_world)
app.command("models", short_help="The worlds that satisfy every hard formula.")(unseeded(list_models))
app.command("count", short_help="How many such worlds there are.")(unseeded(count_models))
app.command("sample", short_help="Worlds drawn at random.")(sample_worlds)
app.command("log-partition", short_help="log Z, the logarithm of the sum over worlds.")(log_partition_of)
app.command("log-probability", short_help="The logarithm of a world's probability.")(
    unseeded(log_probability_of)
)
app.command("convert", short_help="The same theory in another format.")(unseeded(convert_theory))
app.command("draw", short_help="The network as a picture.")(unseeded(draw_machine))
app.command("train", short_help="A classifier from a table and rules.")(train_model)
app.command("predict", short_help="The class of each row, how sure, and why.")(unseeded(predict_rows))
app.command("rules", short_help="What a trained model learned, as formulae.")(extract_theory)
app.command("induce", short_help="What a relational problem teaches, and how well.")(induce_rules)
app.command("saturate", short_help="All that modes let us say about each example.")(saturate_examples)
app.command("reproduce", short_help="The paper's figures beside ours, in one report.")(reproduce_paper)
app.command("warm", short_help="Compile all kernels now, before the first question.")(unseeded(warm_kernels))
