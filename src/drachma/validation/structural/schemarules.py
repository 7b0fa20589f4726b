"""Rules for the schemas of custom resources in addition to those of :mod:`.structure`, CEL rules included.

CEL rules are compiled, and their worst case must be cheap enough: each by itself, as often as it may have to be
evaluated for one object, and all of a schema together.
"""

from typing import Any, Final

import msgspec

from drachma.cel.environment import Expressions
from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path
from drachma.validation.structural import declaredtypes, fieldpaths, rules
from drachma.validation.structural.declaredtypes import LARGEST_REQUEST
from drachma.validation.structural.schema import Rule, Schema

RULE_LIMIT: Final = 10_000_000
"""Limit of the estimated cost of a rule, for all values of an object that it is evaluated on."""

SCHEMA_LIMIT: Final = 100_000_000
"""Limit of the estimated cost of all rules of a schema."""

MOST_RULES: Final = 2000
"""Rules of a schema; each takes a fraction of a millisecond to compile."""

_MOST: Final = 2**64 - 1
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_META: Final = frozenset({"metadata", "kind", "apiVersion"})
_RULES: Final = "x-kubernetes-validations"
_SHOWN_RULES: Final = 4
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)


class Costs:
    """The estimated cost of all rules of a schema, and its most expensive rules."""

    def __init__(self) -> None:
        self.total = 0
        self._expensive: list[tuple[int, Path]] = []

    def add(self, at: Path, cost: int) -> None:
        self.total = min(self.total + cost, _MOST)
        if cost >= SCHEMA_LIMIT // 100:
            self._expensive.append((cost, at))
            self._expensive.sort(key=lambda each: -each[0])
            del self._expensive[_SHOWN_RULES:]

    def check(self, at: Path) -> list[FieldError]:
        """Return the errors of a schema at ``at`` whose rules are too expensive together."""
        if self.total <= SCHEMA_LIMIT:
            return []
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        errors = [fielderror.forbidden(place, detail) for _, place in self._expensive]
        title = f"{_RULES} estimated rule cost total for entire OpenAPIv3 schema"
        return [*errors, fielderror.forbidden(at, _over_budget(title, self.total, SCHEMA_LIMIT))]


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that the rules for a schema depend on in addition to the schema.

    ``stored`` has the expressions of the stored definition; ``spares_costs`` says that the schema has not changed, so
    that its cost is not limited. ``costs`` is None if rules are not compiled.
    """

    stored: frozenset[str] = frozenset()
    spares_costs: bool = False
    costs: Costs | None = None
    cardinality: int | None = 1
    """Largest number of values of the schema in an object; None if there is no limit."""
    uncorrelated: Path | None = None
    """The list or map above whose parts cannot be compared with old ones."""
    is_root: bool = False
    is_metadata: bool = False
    refused_defaults: str = ""
    """Reason why defaults are not allowed here; empty if they are."""

    def choose(self, expression: str) -> Expressions:
        return Expressions.STORED if expression in self.stored else Expressions.NEW

    def drop_rules(self) -> "Circumstances":
        return msgspec.structs.replace(self, costs=None, is_root=False)

    def below(self, schema: Schema) -> "Circumstances":
        """Return the circumstances of the parts of values of a schema."""
        many = _many(schema)
        both = self.cardinality is not None and many is not None
        inside = min((self.cardinality or 0) * (many or 0), _MOST) if both else None
        return msgspec.structs.replace(self, cardinality=inside, is_root=False)

    def drop_correlation(self, at: Path) -> "Circumstances":
        return self if self.uncorrelated is not None else msgspec.structs.replace(self, uncorrelated=at)


def _many(schema: Schema) -> int | None:
    """Return the largest number of values in a list or map of a schema, or None if there is no limit."""
    if schema.type == "array":
        return max(schema.max_items, 0) if schema.max_items is not None else None
    if schema.type == "object" and schema.additional_properties is not None:
        return max(schema.max_properties, 0) if schema.max_properties is not None else None
    return 1


class _Findings:
    """Errors of a schema: those of its form, and those of its rules, which come last."""

    def __init__(self) -> None:
        self.form: list[FieldError] = []
        self.rules: list[FieldError] = []

    def merge(self, findings: "_Findings") -> None:
        self.form += findings.form
        self.rules += findings.rules


def check(schema: Schema, at: Path, circumstances: Circumstances) -> list[FieldError]:
    """Return the errors of the schema of a definition."""
    count = sum(len(each.rules) for each in schema.everywhere())
    if count > MOST_RULES:
        # Differs from upstream: there is no limit there, and no end to the time that compiling them may take.
        return [fielderror.forbidden(at, f"must have at most {MOST_RULES} rules in {_RULES}, has {count}")]
    errors = _check(schema, at, circumstances)
    return [*errors.form, *errors.rules]


def _check(schema: Schema, at: Path, here: Circumstances) -> _Findings:
    errors = _Findings()
    errors.form += _SCHEMA_RULES["SchemaForm"](schema, at, here)
    inside = here.below(schema)
    if schema.additional_properties is not None:
        if schema.properties and schema.additional_properties is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            errors.form.append(fielderror.forbidden(at.child("additionalProperties"), detail))
        if schema.value is not None:
            values = inside
            if here.is_metadata:
                reason = "inside additionalProperties applying to object metadata"
                values = msgspec.structs.replace(inside, refused_defaults=reason)
            errors.merge(_check(schema.value, at.child("additionalProperties"), values))
    for name, part in schema.properties.items():
        errors.merge(_check(part, at.child("properties").key(name), _property_facts(schema, name, at, here, inside)))
    conditions = here.drop_rules()
    if schema.negation is not None:
        errors.merge(_check(schema.negation, at.child("not"), conditions))
    for title, several in (("allOf", schema.all_of), ("oneOf", schema.one_of), ("anyOf", schema.any_of)):
        for index, each in enumerate(several):
            errors.merge(_check(each, at.child(title).item(index), conditions))
    if schema.item is not None:
        items = inside if schema.list_type == "map" else inside.drop_correlation(at)
        errors.merge(_check(schema.item, at.child("items"), items))
    if schema.preserves_unknown_fields is False:
        place = at.child("x-kubernetes-preserve-unknown-fields")
        errors.form.append(fielderror.invalid(place, value=False, detail="must be true or undefined"))
    errors.form += _SCHEMA_RULES["SchemaCollections"](schema, at)
    if schema.rules:
        errors.form += [error for index, rule in enumerate(schema.rules) for error in _rule(rule, schema, at, index)]
        if not errors.form and here.costs is not None:
            errors.rules += _compiled(schema, at, here, here.costs)
    return errors


def _property_facts(schema: Schema, name: str, at: Path, here: Circumstances, inside: Circumstances) -> Circumstances:
    if schema.map_type not in (None, "granular", "atomic"):
        inside = inside.drop_correlation(at)
    if (here.is_root or schema.is_embedded_resource) and name in _META:
        reason = f"in top-level {name}" if here.is_root else inside.refused_defaults
        inside = msgspec.structs.replace(inside, is_metadata=True, refused_defaults=reason)
    return inside


def _check_default(schema: Schema, at: Path, here: Circumstances) -> Errors:
    if schema.default is not msgspec.UNSET and here.refused_defaults:
        yield fielderror.forbidden(at.child("default"), f"must not be set {here.refused_defaults}")


def _has_item_list(schema: Schema) -> bool:
    return isinstance(schema.items, list)


# Lists and maps


def _set_item(item: Schema, at: Path) -> Errors:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    display = item.list_type if item.list_type is not None else rendering.NULL
    if item.type == "array" and item.list_type not in (None, "atomic"):
        yield fielderror.invalid(at.child("x-kubernetes-list-type"), display, detail)
    if item.type == "object" and item.map_type != "atomic":
        yield fielderror.invalid(at.child("x-kubernetes-map-type"), display, detail)


def _check_keys(schema: Schema, at: Path) -> Errors:
    keys, items = at.child("x-kubernetes-list-map-keys"), at.child("items")
    if schema.item is None:
        return
    if schema.item.type != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield fielderror.invalid(items.child("type"), schema.item.type, detail)
        return
    for index, key in enumerate(schema.list_map_keys):
        part = schema.item.properties.get(key)
        if part is None:
            yield fielderror.invalid(keys, list(schema.list_map_keys), "entries must all be names of item properties")
        elif part.type in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield fielderror.invalid(items.child("properties").key(key).child("type"), schema.item.type, detail)
        if key in schema.list_map_keys[:index]:
            yield fielderror.invalid(keys, list(schema.list_map_keys), "must not contain duplicate entries")


def _check_identities(schema: Schema, at: Path) -> Errors:
    """Check that the keys of items are required or have defaults."""
    item, at = schema.item, at.child("items")
    if item is None:
        return
    if item.nullable:
        detail = f"cannot be nullable when x-kubernetes-list-type is {schema.list_type}"
        yield fielderror.forbidden(at.child("nullable"), detail)
    for key in schema.list_map_keys if schema.list_type == "map" else ():
        part, place = item.properties.get(key), at.child("properties").key(key)
        if part is not None and key not in item.required and part.default is msgspec.UNSET:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield fielderror.required(place.child("default"), detail)
        if part is not None and part.nullable:
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield fielderror.forbidden(place.child("nullable"), detail)


# CEL rules


def _rule(rule: Rule, schema: Schema, at: Path, index: int) -> list[FieldError]:
    """Check the form of a rule."""
    here = at.child(_RULES).item(index)
    errors = []
    expression, message = rule.rule.strip(), rule.message.strip()
    if not expression:
        errors.append(fielderror.required(here.child("rule"), "rule is not specified"))
    elif rule.message and not message:
        errors.append(fielderror.invalid(here.child("message"), rule.message, "must be non-empty if specified"))
    elif _has_newlines(message):
        errors.append(fielderror.invalid(here.child("message"), rule.message, "must not contain line breaks"))
    elif _has_newlines(expression) and not message:
        detail = "message must be specified if rule contains line breaks"
        errors.append(fielderror.required(here.child("message"), detail))
    if rule.message_expression and not rule.message_expression.strip():
        detail = "messageExpression must be non-empty if specified"
        errors.append(fielderror.required(here.child("messageExpression"), detail))
    if rule.reason is not None and rule.reason not in _REASONS:
        display = rendering.named(rule.reason)
        errors.append(fielderror.not_supported(here.child("reason"), display, _REASONS))
    place = here.child("fieldPath")
    if rule.field_path and not rule.field_path.strip():
        errors.append(fielderror.invalid(place, rule.field_path, "must be non-empty if specified"))
    if _has_newlines(rule.field_path):
        errors.append(fielderror.invalid(place, rule.field_path, "must not contain line breaks"))
    if rule.field_path and isinstance(fieldpaths.find(rule.field_path, schema), str):
        errors.append(fielderror.invalid(place, rule.field_path, "must be a valid path"))
    return errors


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _compiled(schema: Schema, at: Path, here: Circumstances, costs: Costs) -> list[FieldError]:
    """Check that well-formed rules compile and are cheap enough."""
    declared = declaredtypes.declare(schema, is_resource=here.is_root or schema.is_embedded_resource)
    if declared is None:
        detail = (
            "internal error: failed to construct type information for x-kubernetes-validations rules: "
            "unable to convert structural schema to CEL declarations"
        )
        return [fielderror.internal(at.child(_RULES), detail)]
    errors: list[FieldError] = []
    times = here.cardinality if here.cardinality is not None else LARGEST_REQUEST // (declared.least + 1)
    for index, each in enumerate(rules.compile_rules(schema, declared, here.choose)):
        place = at.child(_RULES).item(index)
        budget = _Budget(errors, here, costs)
        cost = each.program.max_cost if each.program is not None else 0
        budget.charge(place.child("rule"), min(cost * times, _MOST), title="estimated rule cost")
        if each.problem:
            errors.append(fielderror.invalid(place.child("rule"), _shown(each.rule), each.problem))
        if each.message_problem:
            errors.append(fielderror.invalid(place.child("messageExpression"), _shown(each.rule), each.message_problem))
        elif each.message is not None:
            message = place.child("messageExpression")
            budget.charge(message, each.message.max_cost, title="estimated messageExpression cost")
        errors += _old_self(each, place, here)
    return errors


class _Budget:
    def __init__(self, errors: list[FieldError], here: Circumstances, costs: Costs) -> None:
        self._errors = errors
        self._is_spared = here.spares_costs
        self._costs = costs

    def charge(self, at: Path, cost: int, *, title: str) -> None:
        if cost > RULE_LIMIT and not self._is_spared:
            self._errors.append(fielderror.forbidden(at, _over_budget(title, cost, RULE_LIMIT)))
        self._costs.add(at, cost)


def _old_self(compiled: rules.Compiled, at: Path, here: Circumstances) -> list[FieldError]:
    rule = compiled.rule
    if compiled.uses_old_self:
        if here.uncorrelated is None:
            return []
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {here.uncorrelated}"
        return [fielderror.invalid(at.child("rule"), rule.rule, detail)]
    if rule.optional_old_self is None:
        return []
    detail = "may not be set if oldSelf is not used in rule"
    return [fielderror.invalid(at.child("optionalOldSelf"), rule.optional_old_self, detail)]


def _shown(rule: Rule) -> rendering.Rendered:
    """Return a rule in the form of upstream's internal type."""
    fields: dict[str, Any] = {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    }
    return rendering.Rendered(
        "{" + ",".join(f'"{name}":{rendering.wire(value)}' for name, value in fields.items()) + "}"
    )


def _over_budget(title: str, cost: int, limit: int) -> str:
    factor = cost / limit
    display = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{title} exceeds budget by factor of {display} {_ADVICE}"


_SCHEMA_RULES: Final = rulenotation.load_structs("structural/schemarules", globals())
