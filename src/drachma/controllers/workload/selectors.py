"""Label selectors of workloads and budgets, ready to match. Pure."""

from __future__ import annotations

from drachma.api import meta
from drachma.values import labels


def of(selector: meta.LabelSelector | None) -> labels.Selector:
    """What a selector chooses: without one, nothing. InvalidValueError for one that an old rule let pass."""
    if selector is None:
        return labels.NOTHING
    expressions = ((each.key, each.operator, each.values) for each in selector.match_expressions)
    return labels.Selector.from_parts(selector.match_labels, expressions)
