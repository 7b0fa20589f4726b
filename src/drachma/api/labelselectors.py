"""Label selectors of the API, ready to match."""

from drachma.api import meta
from drachma.values import labels


def of(selector: meta.LabelSelector | None) -> labels.Selector:
    """What a selector chooses: nothing where there is none. InvalidValueError for one that is not well-formed."""
    if selector is None:
        return labels.NOTHING
    expressions = ((each.key, each.operator, each.values) for each in selector.match_expressions)
    return labels.Selector.from_parts(selector.match_labels, expressions)
