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
from lbm.views.commands.marginals import list_marginals
from lbm.views.commands.mcp import serve_assistants
from lbm.views.commands.measure import log_partition_of, log_probability_of
from lbm.views.commands.models import list_models
from lbm.views.commands.predict import predict_rows
from lbm.views.commands.reproduce import reproduce_paper
from lbm.views.commands.rules import extract_theory
from lbm.views.commands.sample import sample_worlds
from lbm.views.commands.saturate import saturate_examples
from lbm.views.commands.shared import app, options_apart, unseeded
from lbm.views.commands.studio import open_studio
from lbm.views.commands.train import train_model
from lbm.views.commands.warm import warm_kernels

__all__ = ["app"]

for _command, _name, _short in (
    (unseeded(compile_theory), "compile", "The machine a theory becomes: units and energy."),
    (unseeded(check_theory), "check", "Its size; satisfiable, or which formulae clash."),
    (ask_query, "ask", "How likely is a formula, and is it settled?"),
    (unseeded(entails_query), "entails", "Does a formula follow, and why?"),
    (list_marginals, "marginals", "How likely is every atom?"),
    (best_world, "best", "The world that loses the least weight."),
    (unseeded(list_models), "models", "The worlds that satisfy every hard formula."),
    (unseeded(count_models), "count", "How many such worlds there are, or what they weigh."),
    (sample_worlds, "sample", "Worlds drawn at random."),
    (log_partition_of, "log-partition", "log Z, the logarithm of the sum over worlds."),
    (unseeded(log_probability_of), "log-probability", "The logarithm of a world's probability."),
    (unseeded(convert_theory), "convert", "The same theory in another format."),
    (unseeded(draw_machine), "draw", "The network as a picture."),
    (train_model, "train", "A classifier from a table and rules."),
    (unseeded(predict_rows), "predict", "The class of each row, how sure, and why."),
    (extract_theory, "rules", "What a trained model learned, as formulae."),
    (induce_rules, "induce", "What a relational problem teaches, and how well."),
    (saturate_examples, "saturate", "All that modes let us say about each example."),
    (reproduce_paper, "reproduce", "The paper's figures beside ours, in one report."),
    (unseeded(serve_assistants), "mcp", "Questions as tools for assistants (MCP)."),
    (unseeded(open_studio), "studio", "The page in the browser, on this machine."),
    (unseeded(warm_kernels), "warm", "Compile all kernels now, before the first question."),
):
    app.command(_name, short_help=_short)(options_apart(_command))
