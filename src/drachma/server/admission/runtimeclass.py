"""RuntimeClass: what a pod needs beside its containers, and where it can run, comes from the class that it names."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.server.admission.proposal import Proposal
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.values import quotation
from drachma.values.quantity import Quantity

Document = dict[str, Any]

_CLASSES: Final = "node.k8s.io/runtimeclasses"
_ANOTHER: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClass:
    """Completes new pods by the classes of a store, and refuses those that say something else."""

    def __init__(self, store: Reader) -> None:
        self._store = store

    def admit(self, proposal: Proposal) -> None:
        """Gives a pod the overhead, the node labels and the tolerations of its class."""
        content = proposal.subject.content
        chosen = self._class(proposal)
        if chosen is None:
            return
        spec = dict(content["spec"])
        overhead = _overhead(chosen)
        if overhead is not None:
            if spec.get("overhead") and not _is_same(spec["overhead"], overhead):
                raise proposal.forbidden(_ANOTHER)
            spec["overhead"] = overhead
        scheduling = chosen.get("scheduling")
        if scheduling is not None:
            selector = _merged_selector(proposal, spec.get("nodeSelector") or {}, scheduling.get("nodeSelector") or {})
            tolerations = merged((*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())))
            spec |= {name: value for name, value in (("nodeSelector", selector), ("tolerations", tolerations)) if value}
        proposal.subject.content = {**content, "spec": spec}

    def validate(self, proposal: Proposal) -> None:
        """Refuses a pod whose overhead is not that of its class."""
        own = proposal.subject.content["spec"].get("overhead")
        chosen = self._class(proposal)
        overhead = _overhead(chosen) if chosen is not None else None
        if overhead is not None:
            if not _is_same(own or {}, overhead):
                raise proposal.forbidden(_ANOTHER)
        elif own:
            raise proposal.forbidden(_WITHOUT)

    def _class(self, proposal: Proposal) -> Mapping[str, Any] | None:
        name = proposal.subject.content["spec"].get("runtimeClassName")
        if name is None:
            return None
        stored = self._store.get(record.Key(_CLASSES, "", name))
        if stored is None:
            raise proposal.forbidden(f"pod rejected: RuntimeClass {quotation.quote(name)} not found")
        document: Mapping[str, Any] = stored.value
        return document


def merged(tolerations: Sequence[Document]) -> list[Document]:
    """Tolerations without those that another one includes; of equal ones the first stays."""
    kept: list[Document] = []
    for position, each in enumerate(tolerations):
        later = (other for other in tolerations[position + 1 :] if other != each)
        if not any(_includes(other, each) for other in (*kept, *later)):
            kept.append(each)
    return kept


def _includes(wide: Document, narrow: Document) -> bool:
    """Whether one toleration tolerates all that another does."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    if wide.get("effect") and narrow.get("effect", "") != wide["effect"]:
        return False
    seconds = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None:
        asked = narrow.get("tolerationSeconds")
        if asked is None or asked > seconds:
            return False
    if operator in ("", "Equal"):
        return bool(narrow.get("operator", "") == operator and narrow.get("value", "") == wide.get("value", ""))
    return bool(operator == "Exists")


def _merged_selector(proposal: Proposal, own: Mapping[str, str], of_class: Mapping[str, str]) -> Document:
    for key, value in of_class.items():
        if own.get(key, value) != value:
            raise proposal.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    return {**own, **of_class}


def _overhead(chosen: Mapping[str, Any]) -> Document | None:
    """What a class adds to its pods; None where it says nothing of it."""
    overhead = chosen.get("overhead")
    return dict(overhead.get("podFixed") or {}) if overhead is not None else None


def _is_same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return one.keys() == other.keys() and all(
        Quantity.parse(amount) == Quantity.parse(other[name]) for name, amount in one.items()
    )
