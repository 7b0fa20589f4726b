"""Explanations: why claims fit on a node or do not, as data and as text. Runs only when asked."""

from drachma.allocator.explanation.explainer import Explainer
from drachma.allocator.explanation.report import Explanation, to_document
from drachma.allocator.explanation.text import render
from drachma.allocator.explanation.wording import change as describe_change

__all__ = ["Explainer", "Explanation", "describe_change", "render", "to_document"]
