"""Changes that admission makes to the specs of pods.

Many pods are made from one template and share one spec. What a step makes of a spec follows from it and from few facts,
so pods that come with the same one leave with the same one, too.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

from drachma.server.admission.proposal import Proposal

Spec: TypeAlias = dict[str, Any]

PODS: Final = frozenset({"pods"})
"""The resource whose objects have such a spec."""


def change(proposal: Proposal, make: Callable[..., Spec], *facts: Hashable) -> None:
    """Replaces the spec of a pod by ``make(spec, *facts)``, which is another one, or the same."""
    subject = proposal.subject
    spec: Spec = subject.content["spec"]
    changed = proposal.write.served.interner.part(spec).changed(make, *facts).value
    if changed is not spec:
        subject.content = {**subject.content, "spec": changed}
