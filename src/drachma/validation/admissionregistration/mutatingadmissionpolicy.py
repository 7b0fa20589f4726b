"""Rules for mutating admission policies."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.cel import admission, patches
from drachma.validation import fielderror, rendering
from drachma.validation.admissionregistration import expressions, matching, policybinding, validatingadmissionpolicy
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path

REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_PATCH_TYPES: Final = ("ApplyConfiguration", "JSONPatch")
_FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_RESULTS: Final = {"ApplyConfiguration": patches.OBJECT, "JSONPatch": patches.JSON_PATCH_LIST}


def check(spec: Mapping[str, Any], *, stored: Mapping[str, Any] | None = None) -> Errors:
    """The spec of a policy; ``stored`` is that of the object that it replaces."""
    compiler = admission.Compiler(has_params=spec.get("paramKind") is not None, composes=True)
    yield from validatingadmissionpolicy.check_frame(spec, stored=stored)
    if spec.get("matchConstraints") is not None:
        yield from policybinding.check_operations(spec["matchConstraints"], SPEC.child("matchConstraints"))
    yield from expressions.check_variables(spec.get("variables") or (), SPEC.child("variables"), compiler)
    mutations = spec.get("mutations") or ()
    if not mutations:
        yield fielderror.required(SPEC.child("mutations"), "mutations must contain at least one item")
    known = frozenset(
        text
        for mutation in (stored or {}).get("mutations") or ()
        if (text := (mutation.get("applyConfiguration") or {}).get("expression"))
    )
    for position, mutation in enumerate(mutations):
        yield from _mutation(mutation, SPEC.child("mutations").item(position), compiler, stored=known)
    policy = spec.get("reinvocationPolicy")
    yield from matching.enumerated(policy, SPEC.child("reinvocationPolicy"), REINVOCATION_POLICIES)


def _mutation(mutation: Mapping[str, Any], at: Path, compiler: admission.Compiler, *, stored: frozenset[str]) -> Errors:
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
        yield from expressions.check(text, where, compiler, _RESULTS[patch_type], stored=stored)
    for other in _FIELDS.values():
        if other != field and mutation.get(other) is not None:
            detail = f"must not be specified when patchType is {patch_type}"
            yield fielderror.invalid(at.child(other), f"{{{other}}}", detail)
