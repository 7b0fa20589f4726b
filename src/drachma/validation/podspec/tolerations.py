"""Rules for the tolerations of pods, which differ from those of device requests."""

from collections.abc import Sequence
from typing import Final

from drachma.validation import fielderror, rendering, rulenotation, typerules
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path
from drachma.values import names


def check_only_added(tolerations: Sequence[Document], old: Sequence[Document], *, at: Path) -> Errors:
    """Yield the errors of an update: a toleration stays, but for its tolerationSeconds."""
    identities = [_identity(toleration) for toleration in tolerations]
    if any(_identity(toleration) not in identities for toleration in old):
        yield fielderror.forbidden(at, "existing toleration can not be modified except its tolerationSeconds")
    else:
        yield from check(tolerations, at)


def _identity(toleration: Document) -> tuple[str, ...]:
    return tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))


def _label_value(value: str, at: Path) -> Errors:
    if problems := names.label_value(value):
        yield fielderror.invalid(at, value, ";".join(problems))


def _comparison(operator: str, at: Path) -> Errors:
    yield fielderror.not_supported(at, rendering.named(operator), ("Equal", "Exists", "Lt", "Gt"))


check: Final = typerules.Each(rulenotation.load("podspec/tolerations", globals())["Toleration"])
"""Returns the errors of tolerations."""
