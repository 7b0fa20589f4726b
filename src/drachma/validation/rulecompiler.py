"""Compilation of rules: the steps of a type become one Python function, in the order of errors.

Writes of objects without errors are what the server does most, and a function costs them the least.
"""

from __future__ import annotations

import abc
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError
from drachma.validation.path import Path

Rule = Callable[..., Iterable[FieldError]]
"""Errors of a value at a path, for some with facts about the surroundings."""

_CAPITALS: Final = re.compile(r"(?<=[a-z0-9])[A-Z]+")
OPTIONAL: Final = 0
PRESENT: Final = 1
REQUIRED: Final = 2
ALWAYS: Final = 3
REQUIRED_PRESENT: Final = 4


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
    covered: bool = False
    """Whether a rule that upstream declares on the type is expected to report the same errors."""
    further_name: str = ""
    """Name in messages about a field of a union that is one too many, if that is another one."""
    narrows: bool = False
    """Whether the facts of the rules are this field of the facts."""


class Comparison(NamedTuple):
    """A test of a field: its presence, or how it compares with values or with another field."""

    name: str
    operator: str
    values: tuple[Any, ...] = ()
    other: str = ""


class Union(NamedTuple):
    """Fields of which one must be there: its rules apply, and further fields are forbidden."""

    members: tuple[Step, ...]
    none: str
    several: str


Condition = tuple[Any, ...]
"""Comparisons, functions that take the whole value, and Python's words between them; an empty one always holds."""


class Block(NamedTuple):
    """Rules that depend on conditions: those of the first branch whose condition holds apply."""

    branches: tuple[tuple[Condition, tuple[Any, ...]], ...]


AnyStep = Step | Block | Union


def takes_facts(rule: Rule) -> bool:
    """Return True for rules that are called with facts about the surroundings."""
    if isinstance(rule, Walk):
        return True
    code = getattr(rule, "__code__", None)
    return code is not None and code.co_argcount > 2


def read_document(owner: str, name: str) -> str:
    """Return the expression that reads a field of a document."""
    return f"{owner}.get({name!r})"


def read_attribute(owner: str, name: str) -> str:
    """Return the expression that reads a field of a struct."""
    return f"{owner}.{snake_case(name)}"


def snake_case(name: str) -> str:
    """Return the attribute of a field."""
    return _CAPITALS.sub(lambda capitals: f"_{capitals[0].lower()}", name)


class _Nothing:
    """Value without fields: each of them is absent."""

    def __getattr__(self, name: str) -> None:
        return None

    def get(self, name: str) -> None:
        return None


def compile_steps(steps: Sequence[AnyStep], read_field: Callable[[str, str], str], *, compares: bool = False) -> Any:
    """Return a function that applies steps to a value at a path, with facts.

    ``read_field`` makes the expression for a field. With ``compares``, the function also takes an old value, and passes
    over fields that did not change.
    """
    compiler = _Compiler(read_field, compares=compares)
    head = f"def check(value, at, facts{', old' if compares else ''}):"
    text = "\n".join([head, "    errors = []", *_indent(compiler.lines(steps)), "    return errors"])
    exec(text, compiler.scope)  # the text is made here, of names in rule files
    return compiler.scope["check"]


class _Compiler:
    """The lines of a function, and the objects that they name."""

    def __init__(self, read_field: Callable[[str, str], str], *, compares: bool) -> None:
        self.scope: dict[str, Any] = {
            "Path": Path,
            "EMPTY": _Nothing(),
            "required": fielderror.required,
            "covered": fielderror.covered,
            "forbidden": fielderror.forbidden,
            "read_fact": _read_fact,
        }
        self._read_field = read_field
        self._compares = compares

    def lines(self, steps: Sequence[AnyStep]) -> list[str]:
        lines: list[str] = []
        for step in steps:
            match step:
                case Block():
                    lines += self._block(step)
                case Union():
                    lines += self._union(step)
                case Step():
                    lines += self._step(step)
        return lines

    def _name(self, value: Any) -> str:
        name = f"name{len(self.scope)}"
        self.scope[name] = value
        return name

    def _read(self, owner: str, path: str) -> str:
        """Return the expression for a field, or for a field of a field."""
        first, *names = path.split(".")
        expression = self._read_field(owner, first)
        for name in names:
            expression = self._read_field(f"({expression} or EMPTY)", name)
        return expression

    def _read_old(self, path: str) -> str:
        """Return the expression for a field of the facts, which are an old value."""
        return self._read("(facts or EMPTY)", path)

    def _step(self, step: Step) -> list[str]:
        path = f"Path({step.shown!r}, at)" if step.name and step.shown != "." else "at"
        old = "" if not self._compares else self._read("old", step.name) if step.name else "old"
        body = [line for rule, has_facts in step.rules for line in self._apply(rule, has_facts, step, path, old)]
        if not step.name:
            return body
        body = [
            f"item = {self._read('value', step.name)}",
            *_branches(step, path, self._name(step.default), self._name(step.detail), body or ["pass"]),
        ]
        return [body[0], f"if item != {old}:", *_indent(body[1:])] if self._compares else body

    def _apply(self, rule: Rule, has_facts: bool, step: Step, path: str, old: str) -> list[str]:  # noqa: FBT001
        """Return the lines that apply one rule of a step."""
        name, value = self._name(rule), "item" if step.name else "value"
        if old and isinstance(rule, Walk):
            return [f"errors += {name}.change({value}, {old}, {path}, facts)"]
        facts = f", {self._read_old(step.name)} or {{}}" if step.narrows else ", facts"
        call = f"{name}({value}, {path}{facts if has_facts else ''})"
        call = f"errors += covered({call})" if step.covered else f"errors += {call}"
        # The path is only made for a value that has errors.
        return [call] if _is_lazy(rule) or not step.name else [f"if {name}(item, at):", f"    {call}"]

    def _block(self, block: Block) -> list[str]:
        lines, word = [], "if"
        for condition, steps in block.branches:
            test = " ".join(map(self._test, condition))
            lines += [f"{word} {test}:" if condition else "else:", *_indent(self.lines(steps) or ["pass"])]
            word = "elif"
        return lines

    def _union(self, union: Union) -> list[str]:
        """Return the lines that apply the rules of the first member, and report the others."""
        lines = ["has_member = False"]
        for member in union.members:
            path = f"Path({(member.further_name or member.shown)!r}, at)"
            lines += [
                f"if {self._read('value', member.name)} is not None:",
                "    if has_member:",
                f"        errors.append(forbidden({path}, {union.several!r}))",
                "    else:",
                *_indent(_indent(self._step(member))),
                "    has_member = True",
            ]
        return [*lines, "if not has_member:", f"    errors.append(required(at, {union.none!r}))"]

    def _field(self, name: str) -> str:
        """Return the expression for a field of the value or of the facts."""
        owner, _, fact = name.partition(".")
        return f"read_fact(facts, {fact!r})" if owner == "facts" else self._read("value", name)

    def _test(self, part: Any) -> str:
        """Return a part of a condition in Python."""
        if isinstance(part, str):
            return part
        if not isinstance(part, Comparison):
            return f"{self._name(part)}(value{', facts' if part.__code__.co_argcount > 1 else ''})"
        name, operator, values, other = part
        field = self._field(name)
        if operator.startswith("#"):
            operator, field = operator[1:], f"len({field} or ())"
        if name == "facts":
            return "(facts is not None)"
        if other:
            return f"({field} or 0) {operator} ({self._field(other)} or 0)".replace(" = ", " == ")
        match operator:
            case "":
                return field
            case "?":
                return f"({field} is not None)"
            case "changed":
                return f"(({field} or None) != ({self._read_old(name)} or None))"
            case "?changed":
                return f"({field} != {self._read_old(name)})"
            case "=" | "!=" if isinstance(values[0], bool):
                return f"({field} is {'not ' if operator == '!=' else ''}{values[0]})"
            case "=" | "!=" if isinstance(values[0], str):
                return f"(({field} or '') {'in' if operator == '=' else 'not in'} {values!r})"
        return f"(({field} or 0) {'==' if operator == '=' else operator} {values[0]})"


def _read_fact(facts: Any, name: str) -> Any:
    """Return a field of facts, which are a document or a struct; None if there are no facts."""
    for part in name.split("."):
        facts = facts.get(part) if isinstance(facts, Mapping) else getattr(facts, part, None)
    return facts


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _branches(step: Step, path: str, default: str, detail: str, body: Sequence[str]) -> list[str]:
    """Return the lines that check a field in ``item`` if its mark says so."""
    missing = f"[required({path}, {detail})]"
    report_missing = f"    errors += covered({missing})" if step.covered else f"    errors += {missing}"
    match step.presence:
        case 0:
            return ["if item:", *_indent(body)]
        case 1:
            return ["if item is not None:", *_indent(body)]
        case 2:
            return ["if item:", *_indent(body), "else:", report_missing]
        case 4:
            return ["if item is None:", report_missing, "else:", *_indent(body)]
    return ["if item is None:", f"    item = {default}", *body]


def _is_lazy(rule: Rule) -> bool:
    """Return True for rules that look below a value or yield errors, so that calling them twice costs time."""
    code = getattr(rule, "__code__", None)
    return code is None or takes_facts(rule) or bool(code.co_flags & inspect.CO_GENERATOR)
