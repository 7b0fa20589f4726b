"""Rules of types as data: constraints on fields in upstream's order of errors, and code at the places where it belongs.

The rules of ``x.py`` are in ``x.rules`` next to it, which the module reads once, with :func:`load`. A type has a line
with its name, and below it a line for each rule::

    EndpointPort
        name: dns_label
        port=0: port
        protocol!: SCTP|TCP|UDP
        appProtocol?: qualified_name
        @check_reserved

A field has a mark that says when its value is checked:

=========== ======================================================
``name``    unless it is empty
``name?``   if there is one, even an empty one
``name!``   always; an empty one is "required", with a detail where one is given: ``name!"must be set"``
``name!?``  always; one that is not there is "required"
``name=0``  always; an absent one counts as 0 (or ``{}``, ``[]``, or an empty text: ``name=``)
=========== ======================================================

Several fields can share a line. ``name->other`` is reported under another name. After the colon stand constraints:

============================= ================================================================================
``A|B``                       an enumeration; messages list it in this order (of one value: ``A|``)
``text(A|B)``                 the same for plain texts, which messages quote as Go does
``>=1``, ``<=9``, ``>0``,     numbers; a text in quotes behind one is its message
``1..9``
``max=63``, ``items=8``       a text of at most so many characters, a list of at most so many items
``port``                      a function: one of the module, or of :mod:`drachma.validation.constraints`
``EndpointPort``              a value of that type
``[EndpointPort unique name   a list of such values: no two with one name, at most 8 items
limit 8]``
============================= ================================================================================

``@check`` is a function of the module for a rule between fields; it is called with the whole value. The underscore in
front of a function's name is left out. Names of other modules of this package have the module in front, for instance
``podspec.tolerations.check``.

Functions take the value and its path. Those with a third parameter are also given facts about the surroundings, with
which the caller checks the outermost type.
"""

from __future__ import annotations

import abc
import importlib
import importlib.resources
import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from drachma.validation import constraints, fielderror, rendering
from drachma.validation.fielderror import FieldError
from drachma.validation.path import ROOT, Path

Document = Mapping[str, Any]

Rule = Callable[..., Iterable[FieldError]]
"""Errors of a value at a path, for some with facts about the surroundings."""

ChangeRule = Callable[[Any, Any, Path], Iterable[FieldError]]
"""Errors of a value that replaces an old one at a path."""

IMMUTABLE: Final = "field is immutable"

OPTIONAL: Final = 0
PRESENT: Final = 1
REQUIRED: Final = 2
ALWAYS: Final = 3
REQUIRED_PRESENT: Final = 4

_DEFAULTS: Final[Mapping[str, Any]] = {"": "", "0": 0, "{}": {}, "[]": ()}
_NAME: Final = re.compile(
    r"(?P<name>[A-Za-z]\w*)(?:->(?P<shown>[\w.]+))?(?P<mark>!\?|[!?]|=(?:0|\{\}|\[\])?)?(?P<detail>\"[^\"]*\"|'[^']*')?\s*"
)
_TOKEN: Final = re.compile(r"\"[^\"]*\"|'[^']*'|\[[^\]]*\]|text\([^)]*\)|[^\s\"']+")
_BOUND: Final = re.compile(r"(>=|<=|>)(-?\d+)")
_RANGE: Final = re.compile(r"(-?\d+)\.\.(\d+)")


class Walk(abc.ABC):
    """A rule that looks below its value, and passes on facts about the surroundings."""

    __slots__ = ()

    @abc.abstractmethod
    def __call__(self, value: Any, at: Path, facts: Any = None) -> list[FieldError]:
        """Return the errors of a value."""


class Step(NamedTuple):
    """A rule of a type: for a field, or for the whole value if there is no name."""

    name: str
    presence: int = ALWAYS
    default: Any = None
    detail: str = ""
    shown: str = ""
    rules: tuple[tuple[Rule, bool], ...] = ()
    """Each constraint, and whether it takes facts."""


class Type(Walk):
    """The rules of a type whose values are documents.

    They are compiled to a Python function when the first value is checked: writes of objects without errors are what
    the server does most.
    """

    __slots__ = ("_check", "steps")

    def __init__(self, steps: Sequence[Step] = ()) -> None:
        self.steps = tuple(steps)
        self._check: Any = None

    def complete(self, steps: Sequence[Step]) -> None:
        """Set the rules of a type that others referred to before it was read."""
        self.steps = tuple(steps)

    def __call__(self, value: Document, at: Path = ROOT, facts: Any = None) -> list[FieldError]:
        if self._check is None:
            self._check = compile_steps(self.steps, read_document)
        errors: list[FieldError] = self._check(value, at, facts)
        return errors


def read_document(owner: str, name: str) -> str:
    """Return the expression that reads a field of a document."""
    return f"{owner}.get({name!r})"


def compile_steps(steps: Sequence[Step], read_field: Callable[[str, str], str], *, compares: bool = False) -> Any:
    """Return a function that applies steps to a value at a path, with facts.

    ``read_field`` makes the expression for a field. With ``compares``, the function also takes an old value, and passes
    over fields that did not change.
    """
    scope: dict[str, Any] = {"Path": Path, "required": fielderror.required}
    lines = [f"def check(value, at, facts{', old' if compares else ''}):", "    errors = []"]
    for number, step in enumerate(steps):
        scope.update({f"rule{number}_{index}": rule for index, (rule, _) in enumerate(step.rules)})
        scope[f"default{number}"], scope[f"detail{number}"] = step.default, step.detail
        path = f"Path({step.shown!r}, at)" if step.name else "at"
        old = "" if not compares else read_field("old", step.name) if step.name else "old"
        body = [line for index in range(len(step.rules)) for line in _apply(number, index, step, path, old)]
        if step.name:
            body = [
                f"item = {read_field('value', step.name)}",
                *_branches(step.presence, number, path, body or ["pass"]),
            ]
            if compares:
                body = [body[0], f"if item != {old}:", *(f"    {line}" for line in body[1:])]
        lines += [f"    {line}" for line in body]
    exec("\n".join([*lines, "    return errors"]), scope)  # the text is made here, of names in rule files
    return scope["check"]


def _apply(number: int, index: int, step: Step, path: str, old: str) -> list[str]:
    """Return the lines that apply one rule of a step."""
    rule, takes_facts = step.rules[index]
    name, value = f"rule{number}_{index}", "item" if step.name else "value"
    if old and isinstance(rule, Walk):
        return [f"errors += {name}.change({value}, {old}, {path}, facts)"]
    call = f"errors += {name}({value}, {path}{', facts' if takes_facts else ''})"
    # The path is only made for a value that has errors.
    return [call] if _is_lazy(rule) or not step.name else [f"if {name}(item, at):", f"    {call}"]


def _branches(presence: int, number: int, path: str, body: Sequence[str]) -> list[str]:
    """Return the lines that check a field in ``item`` if its mark says so."""
    report_missing = f"    errors.append(required({path}, detail{number}))"
    indented = [f"    {line}" for line in body]
    match presence:
        case 0:
            return ["if item:", *indented]
        case 1:
            return ["if item is not None:", *indented]
        case 2:
            return ["if item:", *indented, "else:", report_missing]
        case 4:
            return ["if item is None:", report_missing, "else:", *indented]
    return ["if item is None:", f"    item = default{number}", *body]


def _is_lazy(rule: Rule) -> bool:
    """Return True for rules that look below a value or yield errors, so that calling them twice costs time."""
    code = getattr(rule, "__code__", None)
    return code is None or takes_facts(rule) or bool(code.co_flags & inspect.CO_GENERATOR)


class Each(Walk):
    """A constraint on each item of a list.

    A list with more than ``limit`` items has only that error. ``unique`` names a field in which no two items agree; the
    second one is reported there, after its other errors.
    """

    __slots__ = ("_limit", "_rule", "_takes_facts", "_unique")

    def __init__(self, rule: Rule, *, limit: int | None = None, unique: str = "") -> None:
        self._rule = rule
        self._takes_facts = takes_facts(rule)
        self._limit = limit
        self._unique = unique

    def __call__(self, value: Sequence[Any], at: Path, facts: Any = None) -> list[FieldError]:
        if self._limit is not None and len(value) > self._limit:
            return [fielderror.too_many(at, len(value), self._limit)]
        errors: list[FieldError] = []
        previous: set[Hashable] = set()
        for position, item in enumerate(value):
            place = Path(position, at, is_inside=True)
            errors += self._rule(item, place, facts) if self._takes_facts else self._rule(item, place)
            if self._unique:
                key = item.get(self._unique, "")
                if key in previous:
                    errors.append(fielderror.duplicate(Path(self._unique, place), key))
                previous.add(key)
        return errors


def takes_facts(rule: Rule) -> bool:
    """Return True for rules that are called with facts about the surroundings."""
    if isinstance(rule, Walk):
        return True
    code = getattr(rule, "__code__", None)
    return code is not None and code.co_argcount > 2


# Reading


_TypeT = TypeVar("_TypeT", bound=Type)
Special = Callable[[str, Callable[[str], Any]], Any]
"""Makes constraints that only some types have, of a token and a function that finds names; None for other tokens."""


def _no_special(token: str, find: Callable[[str], Any]) -> Any:
    return None


def load(name: str, namespace: Mapping[str, Any]) -> dict[str, Type]:
    """Return the types whose rules stand next to a module of that name, by their names.

    ``namespace`` has the globals of the module, for the functions that the rules name. Raises ValueError for a name
    that nothing has.
    """
    return read(load_text(name), namespace)


def load_text(name: str) -> str:
    """Return the rules next to a module of that name."""
    return importlib.resources.files(__package__).joinpath(f"{name}.rules").read_text()


def read(text: str, namespace: Mapping[str, Any]) -> dict[str, Type]:
    """Return the types whose rules a text declares, as :func:`load` does."""
    return read_as(Type, text, namespace)


def read_as(
    make: Callable[[], _TypeT], text: str, namespace: Mapping[str, Any], special: Special = _no_special
) -> dict[str, _TypeT]:
    """Return types of another form than documents, with constraints of their own."""
    types: dict[str, _TypeT] = {}
    lines: dict[str, list[str]] = {}
    own: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            own.append(line.strip())
        elif line and not line.startswith("#"):
            types[line] = make()
            own = lines[line] = []
    names = _Names(types, namespace, special)
    for title, own in lines.items():
        types[title].complete([step for line in own for step in _steps(line, names)])
    return types


class _Names:
    """The names that rules can use."""

    def __init__(self, types: Mapping[str, Type], namespace: Mapping[str, Any], special: Special) -> None:
        self._types = types
        self._namespace = namespace
        self.special: Final = special

    def find(self, name: str) -> Rule:
        """Return the type or function of a name; raises ValueError if there is none."""
        if name in self._types:
            return self._types[name]
        module, dot, inner = name.rpartition(".")
        if dot:
            owner = importlib.import_module(f"{__package__}.{module}")
            rule = getattr(owner, "TYPES", {}).get(inner) or getattr(owner, inner, None)
        else:
            scope = self._namespace
            rule = next((scope[each] for each in (f"_{name}", name) if each in scope), getattr(constraints, name, None))
        if not callable(rule):
            raise ValueError(f"no rule is called {name}")
        return rule  # type: ignore[no-any-return]


def _steps(line: str, names: _Names) -> list[Step]:
    if line.startswith("@"):
        code = [names.find(name.removeprefix("@")) for name in line.split()]
        return [Step("", rules=tuple((rule, takes_facts(rule)) for rule in code))]
    fields, position = [], 0
    while matched := _NAME.match(line, position):
        fields.append(matched)
        position = matched.end()
    separator, constraint_text = line[position : position + 1], line[position + 1 :]
    if not fields or separator not in ("", ":"):
        raise ValueError(f"not a rule: {line}")
    rules = tuple((rule, takes_facts(rule)) for rule in _constraints(constraint_text, names))
    return [_step(field, rules) for field in fields]


def _step(matched: re.Match[str], rules: tuple[tuple[Rule, bool], ...]) -> Step:
    name, display, mark, detail = (matched[group] or "" for group in ("name", "shown", "mark", "detail"))
    presence = {"": OPTIONAL, "?": PRESENT, "!": REQUIRED, "!?": REQUIRED_PRESENT}.get(mark, ALWAYS)
    default = _DEFAULTS[mark[1:]] if presence == ALWAYS else None
    return Step(name, presence, default, detail[1:-1], display or name, rules)


def _constraints(text: str, names: _Names) -> list[Rule]:
    tokens = _TOKEN.findall(text)
    rules = []
    for position, token in enumerate(tokens):
        if token[0] in "\"'":
            continue
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        detail = following[1:-1] if following[:1] in ('"', "'") else ""
        rules.append(_constraint(token, detail, names))
    return rules


def _constraint(token: str, detail: str, names: _Names) -> Rule:
    special: Rule | None = names.special(token, names.find)
    if special is not None:
        return special
    if bound := _BOUND.fullmatch(token):
        number = int(bound[2])
        match bound[1]:
            case ">=":
                return constraints.at_least(number, detail)
            case "<=":
                return constraints.at_most(number, detail)
        return constraints.at_least(number + 1, detail or constraints.POSITIVE)
    if bounds := _RANGE.fullmatch(token):
        return constraints.between(int(bounds[1]), int(bounds[2]), detail)
    if token.startswith("["):
        item, *options = token[1:-1].split()
        named_options = dict(zip(options[::2], options[1::2], strict=True))
        limit = int(named_options["limit"]) if "limit" in named_options else None
        return Each(_constraint(item, "", names), limit=limit, unique=named_options.get("unique", ""))
    if token.startswith("text("):
        return constraints.one_of_texts(*token[5:-1].split("|"))
    if "|" in token:
        return constraints.one_of(*token.removesuffix("|").split("|"))
    if token.startswith("max="):
        return constraints.max_length(int(token[4:]))
    if token.startswith("items="):
        return constraints.max_items(int(token[6:]))
    return names.find(token)


# Rules between fields that several types have


def one_member(*names: str) -> Rule:
    """Return the rule of a union: exactly one of these fields is present."""
    choice = ", ".join(f"`{name}`" for name in names)

    def rule(value: Document, at: Path) -> list[FieldError]:
        members = [name for name in names if value.get(name) is not None]
        if len(members) == 1:
            return []
        if not members:
            return [fielderror.invalid(at, "", f"must specify one of: {choice}")]
        return [fielderror.invalid(at, f"{{{', '.join(members)}}}", f"must specify exactly one of: {choice}")]

    return rule


# Updates


def show_text(value: str | None) -> str:
    """Show a text in a message."""
    return value or ""


def show_enum(value: str | None) -> rendering.Rendered:
    """Show a value of an enumeration in a message."""
    return rendering.named(value or "")


def show_null(value: Any) -> rendering.Rendered:
    """Show null in a message, as rules do that are declared on upstream's types."""
    return rendering.NULL


def immutable(*names: str, show: Callable[[Any], Any] = rendering.wire, empty_is_absent: bool = False) -> ChangeRule:
    """Return the rule that an update leaves these fields as they are; ``show`` is how messages print a value."""

    def rule(value: Document, old: Document, at: Path) -> list[FieldError]:
        changed = [name for name in names if value.get(name) != old.get(name)]
        if empty_is_absent:
            changed = [name for name in changed if value.get(name) or old.get(name)]
        return [fielderror.invalid(Path(name, at), show(value.get(name)), IMMUTABLE) for name in changed]

    return rule
