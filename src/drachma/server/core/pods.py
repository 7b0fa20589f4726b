"""Pods: defaults, priority and tolerations as admission sets them, and what may change once a pod exists."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma.api import codec, pod
from drachma.api import gates as feature
from drachma.server import documents, objectmeta, resources, status
from drachma.server.core import podspec, qos
from drachma.server.core.document import Document, DocumentStrategy, taken
from drachma.server.strategy import Subject, Traits, Write
from drachma.store import protocol, record
from drachma.validation import fielderror, podfields
from drachma.validation import pod as pod_rules
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC
from drachma.values import names

_PRIORITY_CLASSES: Final = "scheduling.k8s.io/priorityclasses"
_PREEMPT: Final = "PreemptLowerPriority"
_TOLERATED_SECONDS: Final = 300
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CHANGEABLE: Final = frozenset({"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"})
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodStrategy(DocumentStrategy):
    traits = Traits(returns_deleted=True, dies_gracefully=True, is_completed=True)
    counts_generations = True

    def __init__(self, resource: resources.Resource, *, gates: feature.Gates, store: protocol.Store) -> None:
        super().__init__(resource)
        self._gates = gates
        self._store = store

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content.setdefault("spec", {})
        podspec.default(spec)
        podspec.default_requests(spec)
        spec.setdefault("enableServiceLinks", True)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        if spec.get("hostNetwork"):
            for container in podspec.containers(spec):
                for port in container.get("ports") or ():
                    port["hostPort"] = port.get("hostPort") or port.get("containerPort", 0)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        spec = content["spec"]
        self._set_priority(spec, metadata)
        _add_tolerations(spec)
        if not spec.get("serviceAccountName"):
            spec["serviceAccountName"] = spec["serviceAccount"] = "default"
        content["status"] = {"phase": "Pending", "qosClass": qos.of(spec)}
        if spec.get("schedulingGates"):
            content["status"]["conditions"] = [dict(_GATED)]
        content.update(podfields.drop_disabled(content, old=None, gates=self._gates))

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        taken(content, old, "status")
        content.update(podfields.drop_disabled(content, old=dict(old), gates=self._gates))

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        taken(content, old, "spec")
        before = self._store.get(record.Key(self.resource.key, write.namespace, write.name))
        owners = before.value["metadata"].get("ownerReferences") if before is not None else None
        if owners:
            subject.metadata["ownerReferences"] = owners
        else:
            subject.metadata.pop("ownerReferences", None)
        current = content.setdefault("status", {})
        previous = old.get("status") or {}
        if not current.get("qosClass") and previous.get("qosClass"):
            current["qosClass"] = previous["qosClass"]
        content.update(podfields.keep_status(content, dict(old)))
        content.update(podfields.drop_disabled(content, old=dict(old), gates=self._gates))

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from podspec.check(content["spec"], SPEC)
        yield from pod_rules.check(_view(content, subject))

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if not documents.same(_fixed(content["spec"], old["spec"]), _fixed(old["spec"], old["spec"])):
            yield fielderror.forbidden(SPEC, _UPDATABLE)
            return
        yield from _check_tolerations(content["spec"], old["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from pod_rules.check_status(_view(content, subject), _view(old, subject))

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        problems = names.dns1123_label(subject.metadata.get("name", ""))
        if problems:
            shown = " ".join(problems)
            yield (
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{shown}]"
            )

    def grace_period(self, document: Mapping[str, Any], asked: int | None) -> int:
        spec = document.get("spec") or {}
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
        phase = (document.get("status") or {}).get("phase")
        if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
            return 0
        return 1 if period < 0 else int(period)

    def _set_priority(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        name = spec.get("priorityClassName") or ""
        chosen = self._priority_class(name)
        if name and chosen is None:
            detail = f"no PriorityClass with name {name} was found"
            raise status.forbidden(self.resource, metadata.get("name", ""), detail=detail)
        value = chosen.get("value", 0) if chosen is not None else 0
        policy = chosen.get("preemptionPolicy", _PREEMPT) if chosen is not None else _PREEMPT
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        given = spec.get("priority")
        if given is not None and given != value:
            detail = (
                f"the integer value of priority ({given}) must not be provided in pod spec; priority admission "
                f"controller computed {value} from the given PriorityClass name"
            )
            raise status.forbidden(self.resource, metadata.get("name", ""), detail=detail)
        asked = spec.get("preemptionPolicy")
        if asked and asked != policy:
            detail = (
                f"the string value of PreemptionPolicy ({asked}) must not be provided in pod spec; priority "
                f"admission controller computed {policy} from the given PriorityClass name"
            )
            raise status.forbidden(self.resource, metadata.get("name", ""), detail=detail)
        spec["priority"], spec["preemptionPolicy"] = value, policy

    def _priority_class(self, name: str) -> Mapping[str, Any] | None:
        if name:
            found = self._store.get(record.Key(_PRIORITY_CLASSES, "", name))
            return found.value if found is not None else None
        defaults = [
            found.value for found in self._store.list(_PRIORITY_CLASSES).records if found.value.get("globalDefault")
        ]
        return min(defaults, key=lambda each: each.get("value", 0), default=None)


def _view(content: Mapping[str, Any], subject: Subject) -> pod.Pod:
    """The part of a pod that the rules about claims look at."""
    document = {"kind": "Pod", "apiVersion": "v1", **content, "metadata": subject.metadata}
    view = codec.decode(document)
    assert isinstance(view, pod.Pod), "a Pod decodes to a Pod"
    return view


def _add_tolerations(spec: Document) -> None:
    """Pods stay for a while on a node that is not ready; a pod that says something about it is left alone."""
    given = spec.get("tolerations") or []
    for key in _TOLERATED:
        is_tolerated = any(
            each.get("key", "") in (key, "") and each.get("effect", "") in ("NoExecute", "") for each in given
        )
        if not is_tolerated:
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            given.append({**toleration, "tolerationSeconds": _TOLERATED_SECONDS})
    spec["tolerations"] = given


def _fixed(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Document:
    """A pod spec without what updates may change."""
    fixed = {field: value for field, value in spec.items() if field not in _CHANGEABLE}
    for field in _CONTAINERS:
        if field in fixed:
            fixed[field] = [
                {name: value for name, value in container.items() if name != "image"} for container in fixed[field]
            ]
    if old.get("schedulingGates"):
        # Gates can be taken away one by one, and while there are any, a pod can be steered to fewer nodes.
        allowed = documents.copy(old["schedulingGates"])
        gates = fixed.pop("schedulingGates", [])
        if any(gate not in allowed for gate in gates):
            fixed["schedulingGates"] = gates
        fixed.pop("nodeSelector", None)
        fixed.pop("affinity", None)
    return fixed


def _check_tolerations(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    kept = [_identity(each) for each in spec.get("tolerations") or ()]
    if any(_identity(each) not in kept for each in old.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield fielderror.forbidden(SPEC.child("tolerations"), detail)


def _identity(toleration: Mapping[str, Any]) -> bytes:
    fields = {name: value for name, value in toleration.items() if name != "tolerationSeconds"}
    return msgspec.json.encode(fields, order="deterministic")
