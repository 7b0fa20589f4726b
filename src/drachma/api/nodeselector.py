"""Node selectors of slices, devices, allocations and pod affinities."""

from drachma.api.struct import ABSENT_TUPLE, ZERO_TEXT, Struct


class NodeSelectorRequirement(Struct, frozen=True, kw_only=True):
    """``key operator values`` over a node's labels or fields."""

    key: str = ZERO_TEXT
    operator: str = ZERO_TEXT
    values: tuple[str, ...] = ABSENT_TUPLE


class NodeSelectorTerm(Struct, frozen=True, kw_only=True):
    """Conjunction of requirements; a term without requirements matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ABSENT_TUPLE
    match_fields: tuple[NodeSelectorRequirement, ...] = ABSENT_TUPLE


class NodeSelector(Struct, frozen=True, kw_only=True):
    """Disjunction of terms."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ABSENT_TUPLE
