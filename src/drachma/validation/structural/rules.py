"""CEL rules of custom resources (``x-kubernetes-validations``): compiled once for a schema, evaluated on every write.

A rule sees its value as ``self`` and the old value as ``oldSelf``; transition rules, which use ``oldSelf``, are
evaluated if there is an old value. All rules of an object share a budget. An error of a value that has not changed does
not prevent an update, unless a transition rule reports it.

The results of other rules for a field of an object depend on that field alone, and so do those of transition rules for
an unchanged field. Both can be computed apart (``Rules.own_cost``, ``Rules.unchanged_cost``) and left out of a check of
the whole object (:class:`Sound`).
"""

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from drachma import cel
from drachma.cel import environment, types
from drachma.cel.environment import Expressions
from drachma.cel.runtime import faults, values
from drachma.validation import fielderror
from drachma.validation.fielderror import FieldError, Reason
from drachma.validation.path import Path
from drachma.validation.structural import celvalues, correlation, declaredtypes, fieldpaths
from drachma.validation.structural.correlation import NOTHING
from drachma.validation.structural.declaredtypes import Declared
from drachma.validation.structural.schema import Rule, Schema
from drachma.validation.structural.values import NO_FIELD

_T = TypeVar("_T")


class Derive(Protocol):
    """Function that returns ``function(value, *facts)``, which depends on nothing else and is never modified."""

    def __call__(self, value: Any, function: Callable[..., _T], *facts: Any) -> _T: ...


def afresh(value: Any, function: Callable[..., _T], *facts: Any) -> _T:
    """Compute the result."""
    return function(value, *facts)


CALL_LIMIT: Final = 1_000_000
"""Cost limit of one evaluation."""

BUDGET: Final = 10_000_000
"""Cost limit of all rules of an object."""

SELF: Final = "self"
OLD_SELF: Final = "oldSelf"

MESSAGE_BYTES: Final = 5 * 1024
"""Limit of the length of an evaluated message."""

_EXHAUSTED: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_MESSAGE_EXHAUSTED: Final = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)
_UNTYPED: Final = "failed to convert to declType for CEL validation rules"
_OVER_LIMIT: Final = "operation cancelled: actual cost limit exceeded"
_TYPE_FIELDS: Final = ("apiVersion", "kind")
_ROOT: Final = Path()
_REASONS: Final = {
    "FieldValueForbidden": Reason.FORBIDDEN,
    "FieldValueRequired": Reason.REQUIRED,
    "FieldValueDuplicate": Reason.DUPLICATE,
}
_NOTHING_SOUND: Final[Mapping[str, "Sound"]] = {}


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled rule, or the problems of the rule and of its message; an empty rule has neither."""

    rule: Rule
    program: cel.Program | None = None
    problem: str = ""
    message: cel.Program | None = None
    message_problem: str = ""
    place: str = ""
    """Field below the rule's own at which errors are reported."""

    @property
    def uses_old_self(self) -> bool:
        return self.program is not None and OLD_SELF in self.program.variables

    @property
    def is_optional(self) -> bool:
        """Return True if the rule is also evaluated without an old value."""
        return bool(self.rule.optional_old_self)


def compile_rules(schema: Schema, declared: Declared, choose: Callable[[str], Expressions]) -> Sequence[Compiled]:
    """Return the compiled rules of one schema; ``choose`` says of an expression whether it is new or stored."""
    return [_compile(schema, rule, declared, choose) for rule in schema.rules]


def _compile(schema: Schema, rule: Rule, declared: Declared, choose: Callable[[str], Expressions]) -> Compiled:
    if not rule.rule.strip():
        return Compiled(rule=rule)
    try:
        program = cel.compile_expression(rule.rule, _environment(declared, rule, choose(rule.rule)))
    except cel.CompilationError as error:
        return Compiled(rule=rule, problem=str(error))
    if program.result != types.BOOL:
        return Compiled(rule=rule, problem="cel expression must evaluate to a bool")
    message, problem = _message(rule, declared, choose) if rule.message_expression else (None, "")
    place = fieldpaths.find(rule.field_path, schema) if rule.field_path else None
    spelled = str(place.path) if isinstance(place, fieldpaths.Place) else ""
    return Compiled(rule=rule, program=program, message=message, message_problem=problem, place=spelled)


def _message(rule: Rule, declared: Declared, choose: Callable[[str], Expressions]) -> tuple[cel.Program | None, str]:
    env = _environment(declared, rule, choose(rule.message_expression))
    try:
        program = cel.compile_expression(rule.message_expression, env)
    except cel.CompilationError as error:
        # A program that cannot be made is said to have failed in other words than one that does not type-check.
        failed = str(error).replace("program instantiation failed", "instantiation failed", 1)
        return None, f"messageExpression {failed}"
    if program.result != types.STRING:
        return None, "messageExpression must evaluate to a string"
    return program, ""


def _environment(declared: Declared, rule: Rule, expressions: Expressions) -> environment.Environment:
    old = types.optional_of(declared.type) if rule.optional_old_self else declared.type
    return environment.base_environment(
        {SELF: declared.type, OLD_SELF: old},
        declared.objects,
        expressions=expressions,
        bounds={SELF: declared.bound, OLD_SELF: declared.bound},
    )


class _ExhaustedError(Exception):
    """The budget is used up; not raised outside of this module."""


class Sound(NamedTuple):
    """A field of an object without errors, and the cost of its rules.

    ``stays``: the field has not changed, and its transition rules hold.
    """

    cost: int
    stays: bool


class _Choice(enum.Enum):
    """Selection of rules to evaluate."""

    ALL = "all"
    OWN = "those about a value alone"
    CHANGES = "those about changes"


class Rules:
    """The rules of a schema, compiled when they are first needed; a schema without rules costs nothing."""

    def __init__(self, schema: Schema, *, is_resource: bool = True, derive: Derive = afresh) -> None:
        self._root = schema.derive(_resource if is_resource else _below) if schema.has_rules else None
        self._derive: Final = derive

    def check(
        self,
        value: Any,
        *,
        old: Any = NOTHING,
        warnings: list[str] | None = None,
        sound: Mapping[str, Sound] = _NOTHING_SOUND,
    ) -> Sequence[FieldError]:
        """Return the errors of an object that is new, or that replaces an old one.

        ``warnings`` receives errors that the old object has as well.
        """
        root = self._root
        if root is None:
            return ()
        cost = sum(each.cost for each in sound.values())
        evaluation = _Evaluation(BUDGET - cost, ratchets=True, warnings=warnings, convert=self._converted, sound=sound)
        if self._run(evaluation, root, value, None, old=old).budget < 0 and sound:
            # The rule that exceeds the budget depends on the order of all evaluations.
            return self.check(value, old=old, warnings=warnings)
        return evaluation.errors

    def check_part(self, value: Any, at: Path, *, old: Any, budget: int) -> tuple[Sequence[FieldError], int]:
        """Return the errors of a value by itself, such as a default, and the remaining budget."""
        evaluation = _Evaluation(budget, ratchets=False)
        if self._root is not None:
            self._run(evaluation, self._root, value, at, old=old)
        return evaluation.errors, evaluation.budget

    def own_cost(self, value: Any, schema: Schema) -> int | None:
        """Return the cost of the rules of a value, without transition rules, or None if one fails.

        Rules of the parts of the value are not evaluated.
        """
        if not schema.rules:
            return 0
        evaluation = _Evaluation(ratchets=False, choice=_Choice.OWN, convert=self._converted)
        try:
            evaluation.evaluate(schema.derive(_below), value, _ROOT, old=NOTHING, pair=None)
        except _ExhaustedError:
            return None
        return None if evaluation.errors else BUDGET - evaluation.budget

    def whole_cost(self, value: Any, schema: Schema) -> int | None:
        """Return the cost of the rules of a value and its parts, without transition rules, or None if one fails."""
        if not schema.has_rules:
            return 0
        evaluation = _Evaluation(ratchets=False, choice=_Choice.OWN, convert=self._converted)
        self._run(evaluation, schema.derive(_below), value, _ROOT, old=NOTHING)
        return None if evaluation.errors else BUDGET - evaluation.budget

    def unchanged_cost(self, value: Any, name: str) -> int | None:
        """Return the cost of the transition rules of an unchanged field of an object, or None if one fails."""
        node = self._root.properties.get(name) if self._root is not None else None
        if node is None:
            return 0
        evaluation = _Evaluation(ratchets=False, choice=_Choice.CHANGES, convert=self._converted)
        self._run(evaluation, node, value, Path(name), old=value)
        return None if evaluation.errors else BUDGET - evaluation.budget

    def _converted(self, node: "_Node", value: Any) -> Any:
        """Return the CEL value of a document, whose parts are derived."""
        if not node.is_resource:
            return self._convert_part(value, node.schema)
        schema = node.schema.derive(declaredtypes.add_metadata)
        own = schema.properties["metadata"]

        def below(each: Any, part: Schema | None) -> Any:
            # No two objects have the same metadata.
            return celvalues.convert(each, part) if part is own else self._convert_part(each, part)

        return celvalues.convert(value, schema, below)

    def _convert_part(self, value: Any, schema: Schema | None) -> Any:
        if value.__class__ is dict and value and schema is not None:
            return self._derive(value, self._convert, schema)
        return self._convert(value, schema)

    def _convert(self, value: Any, schema: Schema | None) -> Any:
        return celvalues.convert(value, schema, self._convert_part)

    def _run(self, evaluation: "_Evaluation", node: "_Node", value: Any, at: Path | None, *, old: Any) -> "_Evaluation":
        try:
            evaluation.visit(node, value, at, old=old, nearest=None)
        except _ExhaustedError:
            evaluation.budget = -1
        return evaluation


class _Node:
    """The rules of one schema, and the nodes below it that have rules."""

    def __init__(self, schema: Schema, *, is_resource: bool) -> None:
        self.schema: Final = schema
        self.is_resource: Final = is_resource
        self.properties: Final = {
            name: part.derive(_below) for name, part in schema.properties.items() if part.has_rules
        }
        self.item: Final = schema.item.derive(_below) if schema.item is not None and schema.item.has_rules else None
        self.value: Final = schema.value.derive(_below) if schema.value is not None and schema.value.has_rules else None

    @functools.cached_property
    def compiled(self) -> Sequence[Compiled]:
        declared = declaredtypes.declare(self.schema, is_resource=self.is_resource)
        if declared is None:
            return [Compiled(rule=rule, problem=_UNTYPED) for rule in self.schema.rules]
        return compile_rules(self.schema, declared, lambda _expression: Expressions.STORED)

    @functools.cached_property
    def has_changes(self) -> bool:
        """Return True if there are transition rules here or further down."""
        below = [*self.properties.values(), self.item, self.value]
        return any(each.uses_old_self for each in self.compiled) or any(
            each.has_changes for each in below if each is not None
        )

    def convert(self, value: Any) -> Any:
        if self.is_resource:
            return celvalues.convert_resource(value, self.schema)
        return celvalues.convert(value, self.schema)


def _resource(schema: Schema) -> _Node:
    return _Node(schema, is_resource=True)


def _below(schema: Schema) -> _Node:
    return _Node(schema, is_resource=schema.is_embedded_resource)


class _Evaluation:
    """One pass over an object."""

    def __init__(
        self,
        budget: int = BUDGET,
        *,
        ratchets: bool,
        warnings: list[str] | None = None,
        choice: _Choice = _Choice.ALL,
        convert: Callable[[_Node, Any], Any] = _Node.convert,
        sound: Mapping[str, Sound] = _NOTHING_SOUND,
    ) -> None:
        self.errors: Final[list[FieldError]] = []
        self.budget = budget
        self._ratchets = ratchets
        self._warnings = warnings
        self._choice = choice
        self._convert = convert
        self._sound = sound

    def visit(self, node: _Node, value: Any, at: Path | None, *, old: Any, nearest: tuple[Any, Any] | None) -> None:
        """Evaluate the rules of a value and its parts; ``nearest`` is the closest value above that has an old value."""
        if value is None or (self._choice is _Choice.CHANGES and not node.has_changes):
            return
        pair = (value, old) if old is not NOTHING else nearest
        if node.schema.rules:
            self.evaluate(node, value, at, old=old, pair=pair)
        if isinstance(value, dict):
            for name, each in value.items():
                below = node.properties.get(name)
                if below is not None:
                    place = at.child(name) if at is not None else Path(name)
                elif node.value is not None:
                    below, place = node.value, (at or _ROOT).key(name)
                else:
                    continue
                is_type = at is None and name in _TYPE_FIELDS
                before = correlation.field(old, name)
                if at is None and name in self._sound:
                    self._visit_sound(name, below, each, old=before)
                else:
                    self.visit(below, each, place, old=before, nearest=None if is_type else pair)
        elif isinstance(value, list) and node.item is not None:
            items = correlation.Items(node.schema, old)
            for position, each in enumerate(value):
                self.visit(node.item, each, (at or _ROOT).item(position), old=items.of(each), nearest=pair)

    def _visit_sound(self, name: str, node: _Node, value: Any, *, old: Any) -> None:
        """Evaluate the transition rules of a field that has no other errors."""
        if not self._sound[name].stays:
            self._choice = _Choice.CHANGES
            self.visit(node, value, Path(name), old=old, nearest=None)
            self._choice = _Choice.ALL

    def evaluate(self, node: _Node, value: Any, at: Path | None, *, old: Any, pair: tuple[Any, Any] | None) -> None:
        """Evaluate the rules of one value."""
        kind = node.schema.type
        if self.budget <= 0:
            self._refuse(at, kind, _EXHAUSTED)
            raise _ExhaustedError
        is_old = old is not NOTHING and old is not None
        rules = node.compiled if self._choice is _Choice.ALL else self._chosen(node.compiled)
        if not rules:
            return
        variables: dict[str, Any] = {SELF: self._convert(node, value)}
        before = self._convert(node, old) if is_old and any(each.uses_old_self for each in rules) else None
        for compiled in rules:
            if compiled.problem:
                self._refuse(at, kind, f"rule compile error: {compiled.problem}")
                continue
            if compiled.program is None or (compiled.uses_old_self and not is_old and not compiled.is_optional):
                continue
            if compiled.is_optional:
                variables[OLD_SELF] = values.Optional(before) if is_old else values.NONE
            elif is_old:
                variables[OLD_SELF] = before
            if self._holds(compiled, variables, at, kind=kind):
                continue
            error = self._failure(compiled, variables, value, at, kind=kind)
            if self._ratchets and not compiled.uses_old_self and pair is not None and correlation.same(*pair):
                if self._warnings is not None:
                    self._warnings.append(str(error))
            else:
                self.errors.append(error)

    def _chosen(self, rules: Sequence[Compiled]) -> Sequence[Compiled]:
        is_about_changes = self._choice is _Choice.CHANGES
        return [each for each in rules if each.uses_old_self is is_about_changes]

    def _holds(self, compiled: Compiled, variables: Mapping[str, Any], at: Path | None, *, kind: str) -> bool:
        """Return True if a rule holds, or if its evaluation failed, which is reported here."""
        assert compiled.program is not None, "empty rules are not evaluated"
        result = compiled.program.evaluate_variables(variables, limit=CALL_LIMIT)
        self._spend(result.cost, lambda: self._refuse(at, kind, _EXHAUSTED))
        outcome = result.value
        if outcome is True or outcome is False:
            return outcome
        title = _title(compiled.rule)
        problem = str(outcome)
        if problem.startswith(faults.OVERLOAD):
            detail = "call arguments did not match a supported operator, function or macro signature for rule"
            self._refuse(at, kind, f"'{problem}': {detail}: {title}")
        elif problem.startswith(_OVER_LIMIT):
            detail = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._refuse(at, kind, f"'{problem}': {detail}: {title}")
            raise _ExhaustedError
        else:
            self._refuse(at, kind, f"{problem} evaluating rule: {title}")
        return True

    def _failure(
        self, compiled: Compiled, variables: Mapping[str, Any], value: Any, at: Path | None, *, kind: str
    ) -> FieldError:
        rule = compiled.rule
        place = _spell(at, compiled.place)
        detail = ""
        if compiled.message is not None:
            result = compiled.message.evaluate_variables(variables, limit=CALL_LIMIT)
            self._spend(result.cost, lambda: self._refuse_at(place, kind, _MESSAGE_EXHAUSTED))
            detail = _message_text(result.value)
        if not detail:
            detail = rule.message.strip() if rule.message else f"failed rule: {_title(rule)}"
        display = fielderror.OMITTED if kind in ("object", "array") else value
        reason = _REASONS.get(rule.reason or "", Reason.INVALID)
        if reason is Reason.DUPLICATE:
            return FieldError(reason, place, display)
        return FieldError(reason, place, display, detail)

    def _spend(self, cost: int, refuse: Callable[[], None]) -> None:
        if cost > self.budget:
            refuse()
            raise _ExhaustedError
        self.budget -= cost

    def _refuse(self, at: Path | None, kind: str, detail: str) -> None:
        self._refuse_at(_spell(at), kind, detail)

    def _refuse_at(self, field: str, kind: str, detail: str) -> None:
        self.errors.append(FieldError(Reason.INVALID, field, kind, detail))


def _spell(at: Path | None, below: str = "") -> str:
    if at is None:
        return below or NO_FIELD
    return str(at.child(below)) if below else str(at)


def _title(rule: Rule) -> str:
    return (rule.message or rule.rule).strip()


def _message_text(value: Any) -> str:
    """Return the message of an expression if it is one line that is not too long, or an empty text."""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    return "" if "\n" in text or len(text.encode()) > MESSAGE_BYTES else text
