"""Changes that admission makes to pod specs.

Many pods of one template share one spec. A change depends only on the spec and on few facts, so pods that arrive with
one spec also leave with one spec.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from drachma.server.admission.proposal import Proposal

Spec: TypeAlias = dict[str, Any]

PODS: Final = frozenset({"pods"})
"""The resource of pods."""


def change(proposal: Proposal, make: Callable[..., Spec], *facts: Hashable) -> None:
    """Replace the spec of a pod by ``make(spec, *facts)``, which may return the same spec."""
    subject = proposal.subject
    spec: Spec = subject.content["spec"]
    changed = proposal.write.served.interner.part(spec).changed(make, *facts).value
    if changed is not spec:
        subject.content = {**subject.content, "spec": changed}
