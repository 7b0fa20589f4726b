"""RuntimeClass: the class of a pod sets its overhead and restricts its nodes."""

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
    """Completes new pods by their class, and refuses those that contradict it."""

    def __init__(self, store: Reader) -> None:
        self._store = store

    def read_version(self) -> int:
        """Return the revision of the last change of an object that pods depend on here."""
        return self._store.changed(_CLASSES)

    def admit(self, proposal: Proposal) -> None:
        """Set the overhead, node selector and tolerations of the class."""
        content = proposal.subject.content
        runtime_class = self._class(proposal)
        if runtime_class is None:
            return
        spec = dict(content["spec"])
        overhead = _overhead(runtime_class)
        if overhead is not None:
            if spec.get("overhead") and not _is_same(spec["overhead"], overhead):
                raise proposal.forbidden(_ANOTHER)
            spec["overhead"] = overhead
        scheduling = runtime_class.get("scheduling")
        if scheduling is not None:
            selector = _merge_selectors(proposal, spec.get("nodeSelector") or {}, scheduling.get("nodeSelector") or {})
            tolerations = merged((*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())))
            spec |= {name: value for name, value in (("nodeSelector", selector), ("tolerations", tolerations)) if value}
        proposal.subject.content = {**content, "spec": spec}

    def validate(self, proposal: Proposal) -> None:
        """Refuse a pod whose overhead differs from that of its class."""
        own = proposal.subject.content["spec"].get("overhead")
        runtime_class = self._class(proposal)
        overhead = _overhead(runtime_class) if runtime_class is not None else None
        if overhead is not None:
            if not _is_same(own or {}, overhead):
                raise proposal.forbidden(_ANOTHER)
        elif own:
            raise proposal.forbidden(_WITHOUT)

    def _class(self, proposal: Proposal) -> Mapping[str, Any] | None:
        name = proposal.subject.content["spec"].get("runtimeClassName")
        if name is None:
            return None
        existing = self._store.get(record.Key(_CLASSES, "", name))
        if existing is None:
            raise proposal.forbidden(f"pod rejected: RuntimeClass {quotation.quote(name)} not found")
        document: Mapping[str, Any] = existing.value
        return document


def merged(tolerations: Sequence[Document]) -> list[Document]:
    """Return tolerations without those that another one includes; of equal ones the first stays."""
    result: list[Document] = []
    for position, each in enumerate(tolerations):
        later = (later_toleration for later_toleration in tolerations[position + 1 :] if later_toleration != each)
        if not any(_includes(later_toleration, each) for later_toleration in (*result, *later)):
            result.append(each)
    return result


def _includes(wide: Document, narrow: Document) -> bool:
    """Return True if the wide toleration covers the narrow one."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    if wide.get("effect") and narrow.get("effect", "") != wide["effect"]:
        return False
    seconds = wide.get("tolerationSeconds")
    if wide.get("effect") == "NoExecute" and seconds is not None:
        narrow_seconds = narrow.get("tolerationSeconds")
        if narrow_seconds is None or narrow_seconds > seconds:
            return False
    if operator in ("", "Equal"):
        return bool(narrow.get("operator", "") == operator and narrow.get("value", "") == wide.get("value", ""))
    return bool(operator == "Exists")


def _merge_selectors(proposal: Proposal, own: Mapping[str, str], class_labels: Mapping[str, str]) -> Document:
    for key, value in class_labels.items():
        if own.get(key, value) != value:
            raise proposal.forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    return {**own, **class_labels}


def _overhead(runtime_class: Mapping[str, Any]) -> Document | None:
    """Return the overhead of a class; None if it has none."""
    overhead = runtime_class.get("overhead")
    return dict(overhead.get("podFixed") or {}) if overhead is not None else None


def _is_same(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    return first.keys() == second.keys() and all(
        Quantity.parse(amount) == Quantity.parse(second[name]) for name, amount in first.items()
    )
