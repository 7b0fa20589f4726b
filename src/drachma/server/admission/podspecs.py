"""Changes that admission makes to the specs of pods.

Many pods are made from one template and share one spec. What a step makes of a spec depends on little else, so pods
that come with the same one leave with the same one, too.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias, TypeVar

from drachma.server.admission.proposal import Proposal
from drachma.server.kinds import sharing

Spec: TypeAlias = dict[str, Any]

PODS: Final = frozenset({"pods"})
"""The resource whose objects have such a spec."""

_REMEMBERED: Final = 1024
"""How many specs are kept to be shared."""

_T = TypeVar("_T")


class SpecChange(Generic[_T]):
    """Replaces the spec of a pod by what ``change`` makes of it and of one circumstance.

    ``change`` returns another spec, or the same where there is nothing to change.
    """

    def __init__(self, change: Callable[[Spec, _T], Spec]) -> None:
        self._change: Final = change
        self._outcomes: Final = sharing.Outcomes[Spec, tuple[_T, Spec]](_REMEMBERED)

    def apply(self, proposal: Proposal, circumstance: _T) -> None:
        subject = proposal.subject
        spec: Spec = subject.content["spec"]
        outcome = self._outcomes.find(spec)
        if outcome is None or outcome[0] is not circumstance:
            outcome = circumstance, self._change(spec, circumstance)
            self._outcomes.remember(spec, outcome)
        if outcome[1] is not spec:
            subject.content = {**subject.content, "spec": outcome[1]}
