"""Rules for validating and mutating admission policies, and for their bindings."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.cel import admission, patches, types
from drachma.validation import collection, conditions, fielderror, kindrules, rendering, rulenotation, typerules
from drachma.validation.admissionregistration import expressions
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path
from drachma.values import names

_PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
_FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_RESULTS: Final = {"ApplyConfiguration": patches.OBJECT, "JSONPatch": patches.JSON_PATCH_LIST}


def check_mutating(spec: Mapping[str, Any], *, old: Mapping[str, Any] | None = None) -> Errors:
    """Yield the errors of the spec of a policy; ``old`` is the spec that it replaces."""
    compiler = admission.Compiler(has_params=spec.get("paramKind") is not None, composes=True)
    yield from check_frame(spec, old=old)
    if spec.get("matchConstraints") is not None:
        yield from _TYPES["MutatedResources"](spec["matchConstraints"], SPEC.child("matchConstraints"))
    yield from expressions.check_variables(spec.get("variables") or (), SPEC.child("variables"), compiler)
    mutations = spec.get("mutations") or ()
    if not mutations:
        yield fielderror.required(SPEC.child("mutations"), "mutations must contain at least one item")
    old_expressions = frozenset(
        text
        for mutation in (old or {}).get("mutations") or ()
        if (text := (mutation.get("applyConfiguration") or {}).get("expression"))
    )
    for position, mutation in enumerate(mutations):
        yield from _check_mutation(
            mutation, SPEC.child("mutations").item(position), compiler, stored_expressions=old_expressions
        )
    yield from _TYPES["Reinvocation"](spec, SPEC)


def _check_mutation(
    mutation: Mapping[str, Any], at: Path, compiler: admission.Compiler, *, stored_expressions: frozenset[str]
) -> Errors:
    patch_type = mutation.get("patchType", "")
    if not patch_type:
        yield fielderror.required(at.child("patchType"))
        return
    if patch_type not in _PATCH_TYPES:
        yield fielderror.not_supported(at.child("patchType"), rendering.named(patch_type), _PATCH_TYPES)
        return
    field = _FIELDS[patch_type]
    patch = mutation.get(field)
    if patch is None:
        yield fielderror.required(at.child(field), f"must be specified when patchType is {patch_type}")
    elif not (text := patch.get("expression", "").strip()):
        yield fielderror.required(at.child(field, "expression"))
    else:
        where = at.child(field, "expression")
        yield from expressions.check(text, where, compiler, _RESULTS[patch_type], stored_expressions=stored_expressions)
    for other_field in _FIELDS.values():
        if other_field != field and mutation.get(other_field) is not None:
            detail = f"must not be specified when patchType is {patch_type}"
            yield fielderror.invalid(at.child(other_field), f"{{{other_field}}}", detail)


_BOTH: Final = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
    "and headers serves no purpose)"
)


def _deny_or_warn(actions: Sequence[str], at: Path) -> Errors:
    if {"Deny", "Warn"} <= set(actions):
        yield fielderror.invalid(at, rendering.wire(list(actions)), _BOTH)


_ANNOTATIONS: Final = 20
_VALUE_EXPRESSION_BYTES: Final = 5 * 1024
_LINE_BREAK: Final = re.compile(r"[\n\r]")


def check_validating(spec: Mapping[str, Any], *, name: str, old: Mapping[str, Any] | None = None) -> Errors:
    """Yield the errors of the spec of a policy; ``old`` is the spec that it replaces."""
    has_params = spec.get("paramKind") is not None
    variables = spec.get("variables") or ()
    compiler = admission.Compiler(has_params=has_params, composes=bool(variables))
    yield from check_frame(spec, old=old)
    yield from expressions.check_variables(variables, SPEC.child("variables"), compiler)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        for field in ("validations", "auditAnnotations"):
            detail = "validations or auditAnnotations must contain at least one item"
            yield fielderror.required(SPEC.child(field), detail)
    before = old or {}
    yield from _validations(validations, compiler, old=before.get("validations") or ())
    yield from _annotations(annotations, compiler, name=name, old=before.get("auditAnnotations") or ())


def check_frame(spec: Mapping[str, Any], *, old: Mapping[str, Any] | None) -> Errors:
    """Yield the errors of the fields that validating and mutating policies share."""
    yield from _TYPES["PolicyFrame"](spec, SPEC)
    kind = spec.get("paramKind")
    own = spec.get("matchConditions") or ()
    before = (old or {}).get("matchConditions") or ()
    if old is None or kind != old.get("paramKind") or list(own) != list(before):
        old_expressions = expressions.expressions_of(before)
        at = SPEC.child("matchConditions")
        yield from expressions.check_conditions(
            own, at, has_params=kind is not None, stored_expressions=old_expressions
        )


def _validations(
    validations: Sequence[Mapping[str, Any]], compiler: admission.Compiler, *, old: Sequence[Mapping[str, Any]]
) -> Errors:
    old_expressions, old_messages = (
        expressions.expressions_of(old),
        expressions.expressions_of(old, "messageExpression"),
    )
    for position, validation in enumerate(validations):
        at = SPEC.child("validations").item(position)
        text, computed = validation.get("expression", ""), validation.get("messageExpression", "")
        if not text.strip():
            yield fielderror.required(at.child("expression"), "expression is not specified")
        else:
            yield from expressions.check(
                text, at.child("expression"), compiler, types.BOOL, stored_expressions=old_expressions
            )
        if computed and not computed.strip():
            yield fielderror.invalid(at.child("messageExpression"), computed, "must be non-empty if specified")
        elif computed:
            where = at.child("messageExpression")
            yield from expressions.check(
                computed, where, compiler, types.STRING, stored_expressions=old_messages, authorizer=False
            )
        yield from _TYPES["Validation"](validation, at)


def _one_line(message: str, at: Path) -> Errors:
    if not message.strip():
        yield fielderror.invalid(at, message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message.strip()):
        yield fielderror.invalid(at, message, "must not contain line breaks")


def _annotations(
    annotations: Sequence[Mapping[str, Any]],
    compiler: admission.Compiler,
    *,
    name: str,
    old: Sequence[Mapping[str, Any]],
) -> Errors:
    if len(annotations) > _ANNOTATIONS:
        detail = f"must not have more than {_ANNOTATIONS} auditAnnotations"
        display = [
            {"Key": each.get("key", ""), "ValueExpression": each.get("valueExpression", "")} for each in annotations
        ]
        yield fielderror.invalid(SPEC.child("auditAnnotations"), rendering.wire(display), detail)
    old_expressions = expressions.expressions_of(old, "valueExpression")
    place = SPEC.child("auditAnnotations")
    for at, annotation, key, is_repeated in collection.walk_items(annotations, place, field="key"):
        text = annotation.get("valueExpression", "")
        if name:
            full = f"{name}/{key}"
            yield from fielderror.problems(at.child("key"), full, names.qualified_name(full))
        else:
            yield fielderror.invalid(at.child("key"), key, "requires metadata.name be non-empty")
        where, trimmed = at.child("valueExpression"), text.strip()
        if not trimmed:
            yield fielderror.required(where, "valueExpression is not specified")
        elif names.byte_length(trimmed) > _VALUE_EXPRESSION_BYTES:
            yield fielderror.required(where, f"must not exceed {_VALUE_EXPRESSION_BYTES} bytes in length")
        else:
            yield from expressions.check(
                trimmed, where, compiler, types.STRING, types.NULL, stored_expressions=old_expressions, quoted=text
            )
        if is_repeated:
            yield fielderror.duplicate(at.child("key"), key)


def check_status(status: Mapping[str, Any]) -> Errors:
    """Yield the errors of the status of a policy."""
    at = STATUS.child("typeChecking", "expressionWarnings")
    yield from _WARNINGS((status.get("typeChecking") or {}).get("expressionWarnings") or (), at)
    of_status = msgspec.convert(status.get("conditions") or (), tuple[meta.Condition, ...])
    yield from conditions.check(of_status, STATUS.child("conditions"))


def _not_blank(text: str, at: Path) -> Errors:
    if not text.strip():
        yield fielderror.required(at)


_TYPES: Final = rulenotation.load("admissionregistration/policies", globals())
_WARNINGS: Final = typerules.Each(_TYPES["ExpressionWarning"])
KINDS: Final = kindrules.read(_TYPES)
