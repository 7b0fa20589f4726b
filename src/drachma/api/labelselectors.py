"""Label selectors of the API, ready to match."""

from drachma.api import meta
from drachma.values import labels


def of(selector: meta.LabelSelector | None) -> labels.Selector:
    """Return the selector; None matches nothing. Raises InvalidValueError if it is malformed."""
    if selector is None:
        return labels.NOTHING
    expressions = ((each.key, each.operator, each.values) for each in selector.match_expressions)
    return labels.Selector.from_parts(selector.match_labels, expressions)
