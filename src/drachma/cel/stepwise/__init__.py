"""The stepwise machine: evaluates a plan exactly, errors and cost included, one instruction after another.

Programs call it whenever the generated code meets something it has no fast answer for: an error, the cost limit, an
unusual type. It also runs alone for expressions too large to be worth generating code for, and tests hold the generated
code against it. Nothing in it recurses, so the depth of an expression does not matter.
"""

from drachma.cel.stepwise.assembly import assemble
from drachma.cel.stepwise.machine import Result, run

__all__ = ["Result", "assemble", "run"]
