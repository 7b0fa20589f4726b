"""DefaultTolerationSeconds: pods stay for a while on a node that is not ready or cannot be reached."""

from typing import Any, Final

from drachma.server.admission import podspecs
from drachma.server.admission.podspecs import Spec
from drachma.server.admission.proposal import Proposal

_SECONDS: Final = 300
_KEYS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit(proposal: Proposal) -> None:
    """Adds the two tolerations; a pod that says something about the taint itself is left alone."""
    podspecs.change(proposal, _with_tolerations)


def _with_tolerations(spec: Spec) -> Spec:
    own: list[dict[str, Any]] = list(spec.get("tolerations") or ())
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
        for key in _KEYS
        if not any(_tolerates(each, key) for each in own)
    ]
    return {**spec, "tolerations": own + added} if added else spec


def _tolerates(toleration: dict[str, Any], key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")
