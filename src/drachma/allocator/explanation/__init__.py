"""Explanations: why claims fit on a node or do not, as data and as text. Runs only when asked."""

from drachma.allocator.explanation.explainer import Explainer
from drachma.allocator.explanation.report import Explanation, to_document
from drachma.allocator.explanation.text import render

__all__ = ["Explainer", "Explanation", "render", "to_document"]
