"""Node selectors: which nodes a slice, a device, an allocation result or a pod accepts, ready to match.

Called by the allocator and the scheduler, once per node and selector. A selector is a list of terms of which one
must match; a term is a list of conditions on labels and on ``metadata.name`` that must all hold. An empty term
matches no node, and so does a selector without terms.

Refused, with upstream's messages: unknown operators, values that do not suit the operator, impossible labels. Pods
get these errors late, because upstream evaluates their terms one by one: only if no term matches
(:meth:`NodeSelectorMatcher.compile_lazily`). Everyone else gets them at once (:meth:`NodeSelectorMatcher.compile`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from drachma import errors
from drachma.values import fieldtext, labels

_OPERATORS: Final = {
    "In": labels.Operator.IN,
    "NotIn": labels.Operator.NOT_IN,
    "Exists": labels.Operator.EXISTS,
    "DoesNotExist": labels.Operator.DOES_NOT_EXIST,
    "Gt": labels.Operator.GREATER_THAN,
    "Lt": labels.Operator.LESS_THAN,
}
_FIELD_OPERATORS: Final = ("In", "NotIn")
_NAME_FIELD: Final = "metadata.name"


class Expression(NamedTuple):
    """One condition of a term, as it stands in the API; ``values`` is None where it is absent."""

    key: str
    operator: str
    values: Sequence[str] | None = None


class Term(NamedTuple):
    """One term of a node selector, as it stands in the API."""

    match_expressions: Sequence[Expression] = ()
    match_fields: Sequence[Expression] = ()


class NodeSelectorMatcher:
    """A node selector, compiled and immutable."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Iterable[_CompiledTerm]) -> None:
        self._terms = tuple(terms)

    @classmethod
    def compile(cls, terms: Iterable[Term], *, path: str = "") -> NodeSelectorMatcher:
        """The matcher of these terms; raises InvalidValueError with all that is wrong in any of them."""
        matcher = cls.compile_lazily(terms, path=path)
        problems = [problem for term in matcher._terms for problem in term.problems]
        if problems:
            raise errors.InvalidValueError(fieldtext.together(problems))
        return matcher

    @classmethod
    def compile_lazily(cls, terms: Iterable[Term], *, path: str = "") -> NodeSelectorMatcher:
        """The matcher of these terms; what is wrong with them is raised by :meth:`matches`."""
        where = fieldtext.child(path, "nodeSelectorTerms")
        return cls(
            _compile_term(term, f"{where}[{index}]")
            for index, term in enumerate(terms)
            if term.match_expressions or term.match_fields
        )

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return True if a node with these labels and this name is selected.

        Raises InvalidValueError if no term matches and the selector was compiled lazily from bad terms.
        """
        problems: list[str] = []
        for term in self._terms:
            if term.problems:
                problems += term.problems
            elif term.matches(labels, name):
                return True
        if problems:
            raise errors.InvalidValueError(fieldtext.together(problems))
        return False


class RequiredAffinity:
    """Requirements of a pod on its node: ``nodeSelector`` labels and required node affinity."""

    __slots__ = ("_affinity", "_selector")

    def __init__(self, node_selector: Mapping[str, str], terms: Iterable[Term] | None) -> None:
        """``terms`` is None where the pod has no required node affinity: then any node will do."""
        self._selector = labels.Selector.from_labels(node_selector)
        self._affinity = None if terms is None else NodeSelectorMatcher.compile_lazily(terms)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return True if the pod may run on the node. Raises as :meth:`NodeSelectorMatcher.matches` does."""
        if not self._selector.matches(labels):
            return False
        return self._affinity is None or self._affinity.matches(labels, name)


class _CompiledTerm:
    __slots__ = ("_by_name", "_selector", "problems")

    def __init__(
        self, selector: labels.Selector, by_name: Iterable[Callable[[str], bool]], *, problems: Iterable[str]
    ) -> None:
        self._selector = selector
        self._by_name = tuple(by_name)
        self.problems = tuple(problems)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if not self._selector.matches(labels):
            return False
        # Upstream does not look at the fields of a node without a name.
        return not name or all(test(name) for test in self._by_name)


def _field_test(key: str, value: str, *, equal: bool) -> Callable[[str], bool]:
    """A condition on a field as a function of the node's name, which is the only field there is."""
    if key != _NAME_FIELD:
        verdict = (value == "") is equal
        return lambda name: verdict
    return (lambda name: name == value) if equal else (lambda name: name != value)


def _compile_term(term: Term, path: str) -> _CompiledTerm:
    requirements: list[labels.Requirement] = []
    by_name: list[Callable[[str], bool]] = []
    problems: list[str] = []
    for index, expression in enumerate(term.match_expressions):
        where = f"{fieldtext.child(path, 'matchExpressions')}[{index}]"
        operator = _OPERATORS.get(expression.operator)
        if operator is None:
            problems.append(fieldtext.unsupported(fieldtext.child(where, "operator"), expression.operator, _OPERATORS))
            continue
        expression_problems = tuple(
            labels.requirement_problems(expression.key, operator, values=expression.values, path=where)
        )
        problems += expression_problems
        if not expression_problems:
            requirements.append(labels.Requirement(expression.key, operator, expression.values or ()))
    for index, expression in enumerate(term.match_fields):
        where = f"{fieldtext.child(path, 'matchFields')}[{index}]"
        if expression.operator not in _FIELD_OPERATORS:
            problems.append(
                fieldtext.unsupported(fieldtext.child(where, "operator"), expression.operator, _FIELD_OPERATORS)
            )
        elif expression.values is None or len(expression.values) != 1:
            problems.append(
                fieldtext.invalid(fieldtext.child(where, "values"), expression.values, "must have one element")
            )
        else:
            equal = expression.operator == "In"
            by_name.append(_field_test(expression.key, expression.values[0], equal=equal))
    return _CompiledTerm(labels.Selector(requirements), by_name, problems=problems)
