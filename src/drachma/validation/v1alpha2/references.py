"""Rules for references to parameters."""

from drachma.api.v1alpha2 import references
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names


def check_claim(reference: references.ResourceClaimParametersReference | None, at: Path) -> Errors:
    """A reference in a namespace: kind and name are needed."""
    if reference is not None:
        yield from _kind_and_name(reference, at)


def check_class(reference: references.ResourceClassParametersReference | None, at: Path) -> Errors:
    """The same for what may be in any namespace, or in none."""
    if reference is None:
        return
    yield from _kind_and_name(reference, at)
    if reference.namespace:
        yield from fielderror.problems(
            at.child("namespace"), reference.namespace, names.dns1123_label(reference.namespace)
        )


def _kind_and_name(
    reference: references.ResourceClaimParametersReference | references.ResourceClassParametersReference, at: Path
) -> Errors:
    if not reference.kind:
        yield fielderror.required(at.child("kind"))
    if not reference.name:
        yield fielderror.required(at.child("name"))
