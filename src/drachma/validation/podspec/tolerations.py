"""Rules for the tolerations of pods, which differ from those of device requests."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names

Document = Mapping[str, Any]


def check_only_added(tolerations: Sequence[Document], old: Sequence[Document], *, at: Path) -> Errors:
    """Yield the errors of an update: a toleration stays, but for its tolerationSeconds."""
    identities = [_identity(toleration) for toleration in tolerations]
    if any(_identity(toleration) not in identities for toleration in old):
        yield fielderror.forbidden(at, "existing toleration can not be modified except its tolerationSeconds")
    else:
        yield from check(tolerations, at)


def _identity(toleration: Document) -> tuple[str, ...]:
    return tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))


def _check_key(toleration: Document, at: Path) -> Errors:
    operator = toleration.get("operator", "")
    if not toleration.get("key") and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield fielderror.invalid(at.child("operator"), rendering.named(operator), detail)


def _check_seconds(toleration: Document, at: Path) -> Errors:
    effect = toleration.get("effect", "")
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield fielderror.invalid(at.child("effect"), rendering.named(effect), detail)


def _check_operator(toleration: Document, at: Path) -> Errors:
    operator, value, place = toleration.get("operator", ""), toleration.get("value", ""), at.child("operator")
    match operator:
        case "" | "Equal":
            problems = names.label_value(value)
            if problems:
                yield fielderror.invalid(place, value, ";".join(problems))
        case "Exists":
            if value:
                yield fielderror.invalid(place, value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":
            # The feature gate TaintTolerationComparisonOperators is off by default.
            yield fielderror.not_supported(place, rendering.named(operator), ("Equal", "Exists", "Lt", "Gt"))
        case _:
            yield fielderror.not_supported(place, rendering.named(operator), ("Equal", "Exists"))


check: Final = typerules.Each(rulenotation.load("podspec/tolerations", globals())["Toleration"])
"""Returns the errors of tolerations."""
