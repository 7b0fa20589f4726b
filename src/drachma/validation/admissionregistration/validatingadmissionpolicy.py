"""Rules for validating admission policies."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.cel import admission, types
from drachma.validation import conditions, fielderror, rendering
from drachma.validation.admissionregistration import expressions, matching
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path
from drachma.values import names

FAILURE_POLICIES: Final = ("Fail", "Ignore")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ANNOTATIONS: Final = 20
_VALUE_EXPRESSION_BYTES: Final = 5 * 1024
_LINE_BREAK: Final = re.compile(r"[\n\r]")


def check(spec: Mapping[str, Any], *, name: str, stored: Mapping[str, Any] | None = None) -> Errors:
    """The spec of a policy; ``stored`` is that of the object that it replaces."""
    has_params = spec.get("paramKind") is not None
    variables = spec.get("variables") or ()
    compiler = admission.Compiler(has_params=has_params, composes=bool(variables))
    yield from check_frame(spec, stored=stored)
    yield from expressions.check_variables(variables, SPEC.child("variables"), compiler)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        for field in ("validations", "auditAnnotations"):
            detail = "validations or auditAnnotations must contain at least one item"
            yield fielderror.required(SPEC.child(field), detail)
    before = stored or {}
    yield from _validations(validations, compiler, stored=before.get("validations") or ())
    yield from _annotations(annotations, compiler, name=name, stored=before.get("auditAnnotations") or ())


def check_frame(spec: Mapping[str, Any], *, stored: Mapping[str, Any] | None) -> Errors:
    """What policies of both sorts have: when they match, and what happens where they cannot be evaluated."""
    yield from matching.enumerated(spec.get("failurePolicy"), SPEC.child("failurePolicy"), FAILURE_POLICIES)
    kind, constraints = spec.get("paramKind"), spec.get("matchConstraints")
    if kind is not None:
        yield from matching.check_param_kind(kind, SPEC.child("paramKind"))
    if constraints is None:
        yield fielderror.required(SPEC.child("matchConstraints"))
    else:
        yield from matching.check_resources(constraints, SPEC.child("matchConstraints"))
        if not constraints.get("resourceRules"):
            yield fielderror.required(SPEC.child("matchConstraints", "resourceRules"))
    own = spec.get("matchConditions") or ()
    before = (stored or {}).get("matchConditions") or ()
    if stored is None or kind != stored.get("paramKind") or list(own) != list(before):
        known = expressions.expressions_of(before)
        at = SPEC.child("matchConditions")
        yield from expressions.check_conditions(own, at, has_params=kind is not None, stored=known)


def _validations(
    validations: Sequence[Mapping[str, Any]], compiler: admission.Compiler, *, stored: Sequence[Mapping[str, Any]]
) -> Errors:
    known, known_messages = expressions.expressions_of(stored), expressions.expressions_of(stored, "messageExpression")
    for position, validation in enumerate(validations):
        at = SPEC.child("validations").item(position)
        text, computed = validation.get("expression", ""), validation.get("messageExpression", "")
        if not text.strip():
            yield fielderror.required(at.child("expression"), "expression is not specified")
        else:
            yield from expressions.check(text, at.child("expression"), compiler, types.BOOL, stored=known)
        if computed and not computed.strip():
            yield fielderror.invalid(at.child("messageExpression"), computed, "must be non-empty if specified")
        elif computed:
            where = at.child("messageExpression")
            yield from expressions.check(
                computed, where, compiler, types.STRING, stored=known_messages, authorizer=False
            )
        yield from _message(validation.get("message", ""), at.child("message"))
        reason = validation.get("reason")
        if reason is not None and reason not in _REASONS:
            yield fielderror.not_supported(at.child("reason"), rendering.named(reason), _REASONS)


def _message(message: str, at: Path) -> Errors:
    if message and not message.strip():
        yield fielderror.invalid(at, message, "must be non-empty if specified")
    elif _LINE_BREAK.search(message.strip()):
        yield fielderror.invalid(at, message, "must not contain line breaks")


def _annotations(
    annotations: Sequence[Mapping[str, Any]],
    compiler: admission.Compiler,
    *,
    name: str,
    stored: Sequence[Mapping[str, Any]],
) -> Errors:
    if len(annotations) > _ANNOTATIONS:
        detail = f"must not have more than {_ANNOTATIONS} auditAnnotations"
        shown = [
            {"Key": each.get("key", ""), "ValueExpression": each.get("valueExpression", "")} for each in annotations
        ]
        yield fielderror.invalid(SPEC.child("auditAnnotations"), rendering.wire(shown), detail)
    known = expressions.expressions_of(stored, "valueExpression")
    seen: set[str] = set()
    for position, annotation in enumerate(annotations):
        at = SPEC.child("auditAnnotations").item(position)
        key, text = annotation.get("key", ""), annotation.get("valueExpression", "")
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
            yield from expressions.check(trimmed, where, compiler, types.STRING, types.NULL, stored=known, shown=text)
        if key in seen:
            yield fielderror.duplicate(at.child("key"), key)
        seen.add(key)


def check_status(status: Mapping[str, Any]) -> Errors:
    """The status of a policy, which its controller writes."""
    at = STATUS.child("typeChecking", "expressionWarnings")
    for position, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        if not warning.get("warning"):
            yield fielderror.required(at.item(position).child("warning"))
        if not warning.get("fieldRef", "").strip():
            yield fielderror.required(at.item(position).child("fieldRef"))
    of_status = msgspec.convert(status.get("conditions") or (), tuple[meta.Condition, ...])
    yield from conditions.check(of_status, STATUS.child("conditions"))
