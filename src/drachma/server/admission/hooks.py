"""Hooks: functions of components in the server's process, which are called like webhooks.

Their refusals look to clients like those of a webhook of the same name. They see objects in the stored form, and mutate
new ones, or changed ones too. For large objects they run in another thread, so they may only depend on what they read
in the store.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from drachma.server.admission import webhookreview
from drachma.server.admission.proposal import Proposal
from drachma.server.reads.reader import Reader

Document: TypeAlias = Mapping[str, Any]


class Review(NamedTuple):
    """Write that a hook judges. ``old`` is the object that it changes; ``store`` has all other objects."""

    document: Document
    old: Document | None
    namespace: str
    subresource: str
    store: Reader


class Verdict(NamedTuple):
    """Verdict of a hook: the reason of a refusal, if any, and warnings."""

    refusal: str = ""
    warnings: Sequence[str] = ()


class Hook(NamedTuple):
    """A hook; ``name`` is that of the webhook, ``of`` are keys of resources.

    ``mutate`` returns the new object, or None to leave it as it is. It gets changed objects too with
    ``mutates_updates``.

    ``reads_names`` is False if the hook only copies names and compares them with others in the object. Then
    ``read_version`` returns a number that changes with everything else that the hook depends on.
    """

    name: str
    of: frozenset[str]
    mutate: Callable[[Review], dict[str, Any] | None] | None = None
    validate: Callable[[Review], Verdict] | None = None
    mutates_updates: bool = False
    reads_names: bool = True
    read_version: Callable[[], int] | None = None


def mutate(hook: Hook, store: Reader, proposal: Proposal) -> None:
    """Have a hook complete an object."""
    assert hook.mutate is not None, "the hook mutates"
    changed = hook.mutate(_review(proposal, store))
    if changed is not None:
        proposal.replace(changed, changed["apiVersion"].rpartition("/")[2])


def validate(hook: Hook, store: Reader, proposal: Proposal) -> None:
    """Refuse an object that a hook refuses."""
    assert hook.validate is not None, "the hook validates"
    verdict = hook.validate(_review(proposal, store))
    for text in verdict.warnings:
        proposal.write.warn(text)
    if verdict.refusal:
        result = {"code": 403, "reason": "Forbidden", "message": verdict.refusal}
        raise webhookreview.denial(hook.name, result)


def _review(proposal: Proposal, store: Reader) -> Review:
    existing, write = proposal.stored, proposal.write
    return Review(
        document=proposal.document(),
        old=existing.value if existing is not None else None,
        namespace=write.namespace,
        subresource=write.subresource,
        store=store,
    )
