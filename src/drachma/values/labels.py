"""Label selectors: requirements on labels, from the text form or from a LabelSelector's parts, ready to match.

Used by list and watch (``labelSelector=``), controllers, quota, and the node selectors of this package. A
selector is immutable; matching costs one dictionary lookup per requirement.

Refused, with upstream's messages: texts that do not parse, keys and values that cannot be labels, values that do
not suit the operator.
"""

from __future__ import annotations

import enum
import operator as comparison
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from drachma import errors
from drachma.values import fieldtext, names, quotation

_LONGEST_INTEGER: Final = 1000
_INTEGER: Final = re.compile(r"[+-]?[0-9]+").fullmatch


class Operator(enum.Enum):
    """Operator of a requirement; its value is upstream's spelling in texts."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_SPELLING: Final = {
    Operator.IN: " in ",
    Operator.NOT_IN: " notin ",
    Operator.GREATER_THAN: ">",
    Operator.LESS_THAN: "<",
}
_EXPRESSION_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


class Requirement:
    """One condition on one label. Build with :meth:`of`, which refuses what upstream refuses."""

    __slots__ = ("_key", "_operator", "_test", "_values")

    def __init__(self, key: str, operator: Operator, values: Sequence[str] = ()) -> None:
        self._key = key
        self._operator = operator
        self._values = tuple(values)
        self._test = _compile(key, operator, self._values)

    @classmethod
    def of(cls, key: str, operator: Operator, *, values: Sequence[str] | None = (), path: str = "") -> Requirement:
        """The requirement, checked; raises InvalidValueError with all that is wrong, under ``path``."""
        problems = tuple(requirement_problems(key, operator, values=values, path=path))
        if problems:
            raise errors.InvalidValueError(fieldtext.together(problems))
        return cls(key, operator, values or ())

    @property
    def key(self) -> str:
        """The label it is about."""
        return self._key

    @property
    def operator(self) -> Operator:
        """Return the operator."""
        return self._operator

    @property
    def values(self) -> tuple[str, ...]:
        """The values in the order given."""
        return self._values

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels meet the requirement."""
        return self._test(labels)

    def __str__(self) -> str:
        operator = self._operator
        if operator is Operator.EXISTS:
            return self._key
        if operator is Operator.DOES_NOT_EXIST:
            return f"!{self._key}"
        values = ",".join(sorted(self._values))
        if operator in (Operator.IN, Operator.NOT_IN):
            values = f"({values})"
        return f"{self._key}{_SPELLING.get(operator, operator.value)}{values}"

    def __repr__(self) -> str:
        return f"Requirement({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Requirement):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[str, Operator, tuple[str, ...]]:
        return (self._key, self._operator, self._values)


class Selector:
    """Requirements that labels must meet together; without any, everything matches."""

    __slots__ = ("_requirements", "_tests")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self._requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self._tests = tuple(requirement._test for requirement in self._requirements)

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> Selector:
        """Each of these labels, exactly; as upstream for a pod's ``nodeSelector``, nothing is checked."""
        return cls(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items())

    @classmethod
    def from_parts(
        cls,
        match_labels: Mapping[str, str],
        match_expressions: Iterable[tuple[str, str, Sequence[str]]] = (),
    ) -> Selector:
        """The selector of a LabelSelector's ``matchLabels`` and ``matchExpressions`` (key, operator, values).

        Both empty match everything. A LabelSelector that is absent altogether matches nothing: use
        :data:`NOTHING`. Raises InvalidValueError for the first part that is wrong.
        """
        requirements = [Requirement.of(key, Operator.EQUALS, values=(value,)) for key, value in match_labels.items()]
        for key, name, values in match_expressions:
            operator = _EXPRESSION_OPERATORS.get(name)
            if operator is None:
                raise errors.InvalidValueError(f"{quotation.quote(name)} is not a valid label selector operator")
            requirements.append(Requirement.of(key, operator, values=values or None))
        return cls(requirements)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements in the order of their keys."""
        return self._requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return True if the labels meet every requirement."""
        for test in self._tests:  # noqa: SIM110 -- a generator takes three times as long
            if not test(labels):
                return False
        return True

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self._requirements)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._requirements == other._requirements

    def __hash__(self) -> int:
        return hash((type(self), self._requirements))


class _Nothing(Selector):
    """The selector of no object at all."""

    __slots__ = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return False


EVERYTHING: Final = Selector()
NOTHING: Final[Selector] = _Nothing()


def parse_int64(text: str) -> int | None:
    """The integer a label's value spells for the operators Gt and Lt, or None."""
    if len(text) > _LONGEST_INTEGER or not _INTEGER(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def requirement_problems(key: str, operator: Operator, *, values: Sequence[str] | None, path: str) -> Iterator[str]:
    """All that is wrong with a requirement at ``path``, in upstream's order and words."""
    if problems := names.label_key(key):
        yield fieldtext.invalid(fieldtext.child(path, "key"), key, "; ".join(problems))
    where = fieldtext.child(path, "values")
    texts = values or ()
    match operator:
        case Operator.IN | Operator.NOT_IN:
            if not texts:
                yield fieldtext.invalid(where, values, "for 'in', 'notin' operators, values set can't be empty")
        case Operator.EQUALS | Operator.DOUBLE_EQUALS | Operator.NOT_EQUALS:
            if len(texts) != 1:
                yield fieldtext.invalid(where, values, "exact-match compatibility requires one single value")
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            if texts:
                yield fieldtext.invalid(where, values, "values set must be empty for exists and does not exist")
        case Operator.GREATER_THAN | Operator.LESS_THAN:
            if len(texts) != 1:
                yield fieldtext.invalid(where, values, "for 'Gt', 'Lt' operators, exactly one value is required")
            for index, value in enumerate(texts):
                if parse_int64(value) is None:
                    yield fieldtext.invalid(
                        f"{where}[{index}]",
                        value,
                        "for 'Gt', 'Lt' operators, the value must be an integer",
                    )
    for index, value in enumerate(texts):
        if problems := names.label_value(value):
            yield fieldtext.invalid(f"{where}[{index}][{key}]", value, "; ".join(problems))


def _compile(key: str, operator: Operator, values: tuple[str, ...]) -> Callable[[Mapping[str, str]], bool]:
    """The condition as a function, so that matching does not look at the operator again."""
    accepted = frozenset(values)
    match operator:
        case Operator.IN | Operator.EQUALS | Operator.DOUBLE_EQUALS:
            return lambda labels: labels.get(key) in accepted
        case Operator.NOT_IN | Operator.NOT_EQUALS:
            return lambda labels: labels.get(key) not in accepted
        case Operator.EXISTS:
            return lambda labels: key in labels
        case Operator.DOES_NOT_EXIST:
            return lambda labels: key not in labels
        case Operator.GREATER_THAN:
            return _comparison(key, comparison.gt, values)
        case Operator.LESS_THAN:
            return _comparison(key, comparison.lt, values)


def _comparison(
    key: str, compare: Callable[[int, int], bool], values: tuple[str, ...]
) -> Callable[[Mapping[str, str]], bool]:
    bound = parse_int64(values[0]) if len(values) == 1 else None

    def test(labels: Mapping[str, str]) -> bool:
        number = parse_int64(labels.get(key, ""))
        return number is not None and bound is not None and compare(number, bound)

    return test
