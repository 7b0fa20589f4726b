"""Checks of values by a schema, with the messages of upstream's OpenAPI validator.

What is required, of which type, how long, one of which values: everything but CEL rules. Where none of several
alternatives fits, upstream reports what is wrong with the one that fitted best, so checks are counted as they pass.

On updates errors are only reported about what has changed (upstream's ratcheting): a value that is what it was before
is not looked at again, as far as the old one can be found.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from drachma.cel.runtime import regex
from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import FieldError, Reason
from drachma.validation.structural import correlation, formats, numbers
from drachma.validation.structural.correlation import NOTHING
from drachma.validation.structural.schema import Schema
from drachma.values import quotation

NO_FIELD: Final = "<nil>"
"""Name of a whole object in upstream's messages."""

_Path: TypeAlias = tuple[Any, str] | None
"""Path of a value: the path of its container, and the step from there. It is spelled for messages only."""

_Number: TypeAlias = int | float

_TYPES: Final = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
_NUMBER_FORMATS: Final = {int: "int64", float: "float64"}
_INT_LIMITS: Final = {"int32": 2**31, "int64": 2**63, "": 2**63}
_FLOAT32_MAX: Final = 3.4028235677973366e38
_NONE: Final[Mapping[str, Any]] = {}


class _Findings:
    """Errors of a value, without repetitions, and the number of checks that it passed."""

    __slots__ = ("errors", "passed", "prefix")

    def __init__(self, prefix: str) -> None:
        self.errors: list[FieldError] = []
        self.passed = 0
        self.prefix = prefix

    def add(self, error: FieldError) -> None:
        if error not in self.errors:
            self.errors.append(error)

    def merge(self, findings: "_Findings") -> None:
        for error in findings.errors:
            self.add(error)
        self.passed += findings.passed

    def place(self, path: str) -> str:
        """Return the field of an error at a path."""
        name = path.removeprefix(".")
        if not self.prefix:
            return name or NO_FIELD
        return f"{self.prefix}.{name}" if name else self.prefix

    def refuse(self, path: str, value: Any, detail: str, *, reason: Reason = Reason.INVALID) -> None:
        display = rendering.Rendered(numbers.text(value)) if isinstance(value, float) else value
        self.add(FieldError(reason, self.place(path), display, detail))

    def say(self, detail: str) -> None:
        """Add an error for which upstream names no field."""
        self.add(FieldError(Reason.INVALID, self.place(""), "", detail))


def check(
    schema: Schema, value: Any, *, old: Any = NOTHING, prefix: str = "", sound: Mapping[str, Any] = _NONE
) -> Sequence[FieldError]:
    """Return the errors of a value that is new, or that replaces an old one.

    ``prefix`` is the field that the value is in; messages name paths without it, as upstream's do. ``sound`` are fields
    of the value with which nothing is wrong: they are not looked at, as if they had been there before.
    """
    findings = _Findings(prefix)
    if old is NOTHING:
        _check(schema, value, None, findings, old=sound if sound else NOTHING)
    elif not correlation.same(value, old):
        _check(schema, value, None, findings, old={**old, **sound} if sound and isinstance(old, dict) else old)
    return findings.errors


def fits(schema: Schema, value: Any) -> bool:
    """Return True if a value has no errors."""
    return not check(schema, value)


def _spell(path: _Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "".join(reversed(steps))


def _property(path: _Path, name: str) -> _Path:
    return path, f".{name}" if path is not None else name


def _check_changed(schema: Schema, value: Any, path: _Path, findings: _Findings, *, old: Any) -> None:
    if not correlation.same(value, old):
        _check(schema, value, path, findings, old=old)


class _Plan:
    """Checks that a schema needs, so that most others are skipped at once."""

    __slots__ = ("counts_type", "has_alternatives", "is_format", "is_plain_text", "kinds")

    def __init__(self, schema: Schema) -> None:
        expected_types = _expected_types(schema)
        form = formats.supported(schema)
        self.counts_type = bool(expected_types or schema.format)
        self.has_alternatives = bool(schema.any_of or schema.one_of or schema.all_of or schema.negation is not None)
        self.is_format = formats.CHECKS.get(formats.normalized(form)) if form else None
        self.kinds = (
            frozenset(kind for kind, name in _TYPES.items() if name in expected_types) if not form else frozenset()
        )
        """Return the Python types whose values always have the right type."""
        limits = (schema.max_length, schema.min_length)
        self.is_plain_text = not schema.pattern and limits == (None, None) and self.is_format is None


def _check(schema: Schema, value: Any, path: _Path, findings: _Findings, *, old: Any = NOTHING) -> None:
    """The checks of one value, in upstream's order."""
    if value is None:
        _type(schema, value, path, findings)
        _enum(schema, value, path, findings)
        return
    value = numbers.native(value)
    kind = value.__class__
    plan = schema.derive(_Plan)
    if kind in plan.kinds:
        findings.passed += 2
    elif plan.counts_type:
        findings.passed += 1
        _type(schema, value, path, findings)
    findings.passed += 2
    if plan.has_alternatives:
        _alternatives(schema, value, path, findings)
    if kind is str:
        findings.passed += 1
        if not plan.is_plain_text:
            _text(schema, value, path, findings, is_format=plan.is_format)
    elif kind is int or kind is float:
        findings.passed += 2
        if kind is float and not math.isfinite(value):
            # Go refuses such a number when it decodes the body.
            spelled = _spell(path)
            findings.refuse(spelled, numbers.text(value), f"{spelled} in body must be a number of 64 bits")
        else:
            _number(schema, value, path, findings)
    elif kind is list:
        findings.passed += 2
        _items(schema, value, path, findings, old=old)
    findings.passed += 1
    if schema.enum:
        _enum(schema, value, path, findings)
    if kind is dict:
        findings.passed += 1
        _fields(schema, value, path, findings, old=old)
    findings.passed += 1


# Types


def _expected_types(schema: Schema) -> tuple[str, ...]:
    if schema.is_int_or_string:
        return "integer", "string"
    return (schema.type,) if schema.type else ()


def _type(schema: Schema, value: Any, path: _Path, findings: _Findings) -> None:
    expected_types = _expected_types(schema)
    if value is None:
        if expected_types and not schema.nullable:
            _refuse_type(path, findings, expected_type=",".join(expected_types), value="null")
        return
    kind = value.__class__
    name = _TYPES[kind]
    is_number = name in expected_types or (
        (kind is float and "integer" in expected_types and numbers.is_whole(value))
        or (kind is int and "number" in expected_types)
    )
    form = formats.supported(schema)
    if form and kind is not str and kind is not list and not is_number:
        display = _NUMBER_FORMATS.get(kind, "")
        if display != form:
            _refuse_type(path, findings, expected_type=form, value=display)
            return
    if form and (kind is str or kind is list) and not {"number", "integer"} & set(expected_types):
        findings.passed += 1
        return
    if not is_number:
        _refuse_type(path, findings, expected_type=",".join(expected_types), value=name)
        return
    findings.passed += 1


def _refuse_type(path: _Path, findings: _Findings, *, expected_type: str, value: str) -> None:
    spelled = _spell(path)
    detail = f"{spelled} in body must be of type {expected_type}: {quotation.quote(value)}"
    findings.refuse(spelled, value, detail, reason=Reason.TYPE_INVALID)


# Alternatives


def _try(schema: Schema, value: Any, path: _Path, findings: _Findings) -> _Findings:
    tried = _Findings(findings.prefix)
    _check(schema, value, path, tried)
    return tried


def _alternatives(schema: Schema, value: Any, path: _Path, findings: _Findings) -> None:
    if schema.any_of:
        _any_of(schema, value, path, findings)
    if schema.one_of:
        _one_of(schema, value, path, findings)
    if schema.all_of:
        _all_of(schema, value, path, findings)
    if schema.negation is not None and not _try(schema.negation, value, path, findings).errors:
        findings.say(f"{_quoted(path)} must not validate the schema (not)")


def _any_of(schema: Schema, value: Any, path: _Path, findings: _Findings) -> None:
    best: _Findings | None = None
    for each in schema.any_of:
        tried = _try(each, value, path, findings)
        if not tried.errors:
            findings.merge(tried)
            return
        if best is None or tried.passed > best.passed:
            best = tried
    assert best is not None, "there are alternatives"
    findings.say(f"{_quoted(path)} must validate at least one schema (anyOf)")
    findings.merge(best)


def _one_of(schema: Schema, value: Any, path: _Path, findings: _Findings) -> None:
    tries = [_try(each, value, path, findings) for each in schema.one_of]
    fitting = [tried for tried in tries if not tried.errors]
    if len(fitting) == 1:
        findings.merge(fitting[0])
        return
    count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
    findings.say(f"{_quoted(path)} must validate one and only one schema (oneOf). {count}")
    if not fitting:
        findings.merge(max(tries, key=lambda tried: tried.passed))


def _all_of(schema: Schema, value: Any, path: _Path, findings: _Findings) -> None:
    tries = [_try(each, value, path, findings) for each in schema.all_of]
    for tried in tries:
        findings.merge(tried)
    failed = sum(bool(tried.errors) for tried in tries)
    if failed:
        none = ". None validated" if failed == len(tries) else ""
        findings.say(f"{_quoted(path)} must validate all the schemas (allOf){none}")


def _quoted(path: _Path) -> str:
    return quotation.quote(_spell(path))


# Scalars


def _text(
    schema: Schema, value: str, path: _Path, findings: _Findings, *, is_format: Callable[[str], bool] | None
) -> None:
    problem = _text_problem(schema, value)
    if problem is not None:
        problem(_spell(path), findings)
    if is_format is not None:
        findings.passed += 1
        if not is_format(value):
            _refuse_type(path, findings, expected_type=schema.format, value=value)


def _text_problem(schema: Schema, value: str) -> Callable[[str, _Findings], None] | None:
    """Return the first problem of a text; upstream reports only one."""
    limit, least = schema.max_length, schema.min_length
    if limit is not None and len(value) > limit:
        return lambda path, findings: findings.add(
            FieldError(Reason.TOO_LONG, findings.place(path), "", _check_maximum(limit))
        )
    if least is not None and len(value) < least:
        return lambda path, findings: findings.refuse(
            path, value, f"{path} in body should be at least {least} chars long"
        )
    if schema.pattern:
        try:
            if schema.matches(value):
                return None
            display = schema.pattern
        except regex.PatternError as error:
            display = f"{schema.pattern}, but pattern is invalid: {error}"
        return lambda path, findings: findings.refuse(path, value, f"{path} in body should match '{display}'")
    return None


def _check_maximum(limit: int) -> str:
    return f"may not be more than {limit} {'byte' if limit == 1 else 'bytes'}"


def _number(schema: Schema, value: _Number, path: _Path, findings: _Findings) -> None:
    kind, form = "", ""
    if not schema.is_int_or_string and schema.type in ("integer", "number"):
        kind = schema.type
        form = formats.supported(schema)
    if not kind and schema.minimum is None and schema.maximum is None and schema.multiple_of is None:
        return
    bounds = (
        ("MultipleOf", schema.multiple_of, _multiple),
        ("Minimum boundary", schema.minimum, _minimum),
        ("Maximum boundary", schema.maximum, _maximum),
    )
    if not _is_in_range(value, kind, form):
        findings.say(_out_of_range("Checked", kind, form, path))
    for title, bound, rule in bounds:
        if bound is None:
            continue
        limit: _Number = bound
        exact = value
        if _is_in_range(limit, kind, form):
            if exact.__class__ is int:
                limit = int(limit)
        else:
            findings.say(_out_of_range(title, kind, form, path))
            exact, limit = float(value), float(limit)
        detail = rule(schema, exact, limit)
        if detail:
            spelled = _spell(path)
            findings.refuse(spelled, exact, f"{spelled} in body should be {detail}")


def _multiple(_schema: Schema, value: _Number, factor: _Number) -> str:
    if factor <= 0:
        return ""
    if isinstance(value, int) and isinstance(factor, int):
        is_multiple = value % factor == 0
    else:
        is_multiple = numbers.is_whole(1 / factor * value if factor < 1 else value / factor)
    return "" if is_multiple else f"a multiple of {numbers.text(factor)}"


def _minimum(schema: Schema, value: _Number, least: _Number) -> str:
    if value > least or (value == least and not schema.exclusive_minimum):
        return ""
    return f"greater than {'' if schema.exclusive_minimum else 'or equal to '}{numbers.text(least)}"


def _maximum(schema: Schema, value: _Number, most: _Number) -> str:
    if value < most or (value == most and not schema.exclusive_maximum):
        return ""
    return f"less than {'' if schema.exclusive_maximum else 'or equal to '}{numbers.text(most)}"


def _is_in_range(value: _Number, kind: str, form: str) -> bool:
    """Return True if a number has a type and format without loss."""
    if kind == "integer":
        limit = _INT_LIMITS[form]
        return float(value).is_integer() and -limit <= value < limit
    return form != "float" or abs(value) <= _FLOAT32_MAX


def _out_of_range(title: str, kind: str, form: str, path: _Path) -> str:
    expected_type = f"{kind} with format {form}" if form else f"{kind} (default format)"
    return f"{title} value must be of type {expected_type} in {_spell(path)}"


def _enum(schema: Schema, value: Any, path: _Path, findings: _Findings) -> None:
    if not schema.enum or any(_is_choice(value, each) for each in schema.enum):
        return
    display = [each if isinstance(each, str) else rendering.wire(each) for each in schema.enum]
    error = fielderror.not_supported_at(findings.place(_spell(path)), value, display)
    findings.add(error)


def _is_choice(value: Any, choice: Any) -> bool:
    if value is None or choice is None:
        return False
    numbers = (int, float)
    if value.__class__ in numbers and choice.__class__ in numbers:
        return bool(value == choice)
    return correlation.same(value, choice)


# Containers


def _items(schema: Schema, value: list[Any], path: _Path, findings: _Findings, *, old: Any) -> None:
    item = schema.item
    if item is not None:
        before = correlation.Items(schema, old) if old is not NOTHING else None
        for position, each in enumerate(value):
            below = path, f"[{position}]"
            old_item = before.of(each) if before is not None else NOTHING
            if old_item is NOTHING:
                _check(item, each, below, findings)
            else:
                _check_changed(item, each, below, findings, old=old_item)
    size = len(value)
    if schema.min_items is not None and size < schema.min_items:
        spelled = _spell(path)
        findings.refuse(spelled, size, f"{spelled} in body should have at least {schema.min_items} items")
    if schema.max_items is not None and size > schema.max_items:
        findings.add(fielderror.too_many_at(findings.place(_spell(path)), size, schema.max_items))


def _fields(schema: Schema, value: dict[str, Any], path: _Path, findings: _Findings, *, old: Any) -> None:
    size = len(value)
    if schema.min_properties is not None and size < schema.min_properties:
        spelled = _spell(path)
        detail = f"{spelled} in body should have at least {schema.min_properties} properties"
        findings.refuse(spelled, size, detail)
    if schema.max_properties is not None and size > schema.max_properties:
        findings.add(fielderror.too_many_at(findings.place(_spell(path)), size, schema.max_properties))
    properties, value_schema = schema.properties, schema.value
    for name, each in value.items():
        part = properties.get(name)
        if part is not None:
            below = _property(path, name)
        elif value_schema is not None:
            part, below = value_schema, (path, f".{name}")
        else:
            if schema.additional_properties is False:
                spelled = _spell(path)
                findings.refuse(spelled, name, f"{spelled}.{name} in body is a forbidden property")
            continue
        old_value = correlation.field(old, name)
        if old_value is NOTHING or (path is None and name in ("apiVersion", "kind")):
            _check(part, each, below, findings)
        else:
            _check_changed(part, each, below, findings, old=old_value)
    for name in schema.required:
        if name not in value:
            findings.add(FieldError(Reason.REQUIRED, findings.place(f"{_spell(path)}.{name}")))
