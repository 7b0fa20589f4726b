"""Functions that are asked about writes as webhooks are, without a network in between: those of components that run in
the server's process.

What they refuse looks to clients as what a webhook of that name refuses. They are asked about objects in the form that
is stored, and mutate new ones only. About large objects they are asked in a lane, so they may depend on nothing that
changes but on what they read in the store.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from drachma.server.admission import webhookreview
from drachma.server.admission.proposal import Proposal
from drachma.server.reads.reader import Reader

Document: TypeAlias = Mapping[str, Any]


class Review(NamedTuple):
    """A write that is asked about. ``old`` is what it changes; ``store`` has other objects as they are."""

    document: Document
    old: Document | None
    namespace: str
    subresource: str
    store: Reader


class Verdict(NamedTuple):
    """What a function says: why not, if so, and what the client should know."""

    refusal: str = ""
    warnings: Sequence[str] = ()


class Hook(NamedTuple):
    """``name`` is that of the webhook; ``of`` are keys of resources.

    ``mutate`` returns the object as it should be, or None to leave it as it is.
    """

    name: str
    of: frozenset[str]
    mutate: Callable[[Review], dict[str, Any] | None] | None = None
    validate: Callable[[Review], Verdict] | None = None


def mutate(hook: Hook, store: Reader, proposal: Proposal) -> None:
    """Has a function complete a new object."""
    assert hook.mutate is not None, "only who mutates is asked"
    changed = hook.mutate(_review(proposal, store))
    if changed is not None:
        proposal.replace(changed, changed["apiVersion"].rpartition("/")[2])


def validate(hook: Hook, store: Reader, proposal: Proposal) -> None:
    """Refuses what a function refuses."""
    assert hook.validate is not None, "only who validates is asked"
    verdict = hook.validate(_review(proposal, store))
    for text in verdict.warnings:
        proposal.write.warn(text)
    if verdict.refusal:
        result = {"code": 403, "reason": "Forbidden", "message": verdict.refusal}
        raise webhookreview.denial(hook.name, result)


def _review(proposal: Proposal, store: Reader) -> Review:
    stored, write = proposal.stored, proposal.write
    return Review(
        document=proposal.document(),
        old=stored.value if stored is not None else None,
        namespace=write.namespace,
        subresource=write.subresource,
        store=store,
    )
