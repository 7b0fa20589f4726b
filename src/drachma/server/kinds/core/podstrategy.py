"""Strategy of pods: defaults, validation, warnings, and the fields that each subresource may change."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.accounting import qos
from drachma.api import codec, hooks, meta, pod
from drachma.api.types import model
from drachma.server import documents, objectmeta
from drachma.server.kinds.core import labelkeys, podspec
from drachma.server.kinds.document import Document, restore_fields
from drachma.server.kinds.templated import TemplatedStrategy
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, FastPath, Marks, Subject, Write
from drachma.validation import podfields
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import METADATA, SPEC
from drachma.validation.podspec import apparmor, changes, resizing, warnings
from drachma.validation.podspec import pod as pod_rules
from drachma.validation.podspec import spec as spec_rules
from drachma.validation.podspec import status as claim_rules
from drachma.validation.podspec import status as status_rules
from drachma.values import names, quantity

_CLAIM_NAMES: Final = {"status": ("resourceClaimStatuses",)}

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


EPHEMERAL_CONTAINERS: Final = "ephemeralcontainers"
"""Subresource that adds debugging containers to a running pod."""

RESIZE: Final = "resize"
"""Subresource that changes the cpu and memory of containers."""

_KEPT_ON_RESIZE: Final = ("deletionTimestamp", "ownerReferences", "labels", "annotations", "finalizers")


class PodStrategy(TemplatedStrategy):
    counts_generations = True
    rechecks_names = True
    prefilled = frozenset({"metadata", "spec"})

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        self._drops_fields = not podfields.is_complete(environment.gates)

    def read(self, document: Document, write: Write) -> Subject:
        subject = super().read(document, write)
        raw_status = document.get("status")
        cleared: Document = (
            {field: [] for field in podfields.LISTS if raw_status.get(field) == []} if raw_status else {}
        )
        if cleared:
            # In a status, an empty list means something else than an absent one (see podfields.keep_status).
            subject.content["status"] = {**(subject.content.get("status") or {}), **cleared}
        return subject

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        current = content.get("status")
        if current and (current.get("podIP") or current.get("podIPs")):
            content["status"] = _default_addresses(current)

    def normalize_spec(self, spec: Document, schema: model.Object) -> Document:
        node = spec.get("nodeName")
        if not node or not isinstance(node, str):
            return super().normalize_spec(spec, schema)
        # Specs of one template are equal but for the node.
        unassigned = dict(spec)
        del unassigned["nodeName"]
        normal = super().normalize_spec(unassigned, schema)
        return spec if normal == unassigned else {**normal, "nodeName": node}

    def default_spec(self, spec: Document) -> None:
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
        annotations = metadata.get("annotations")
        if annotations:
            content["spec"], deprecated = apparmor.copy_annotations(annotations, content["spec"])
            for key in deprecated:
                write.warn(f"{METADATA.child('annotations').key(key)}: {apparmor.DEPRECATION}")
        spec = self._interner.part(content["spec"]).changed(self._new_spec)
        if "affinity" in spec.value or "topologySpreadConstraints" in spec.value:
            spec = self._interner.part(labelkeys.merge_label_keys(spec.value, metadata.get("labels") or {}))
        current: Document = {"phase": "Pending", "qosClass": spec.derive(_qos_class)}
        if spec.value.get("schedulingGates"):
            current["conditions"] = [{**_GATED, "lastTransitionTime": meta.time_text(write.now)}]
        content["spec"], content["status"] = spec.value, current

    def _new_spec(self, admitted: Document) -> Document:
        spec = dict(admitted)
        podspec.default_pod_resources(spec)
        enabled = podfields.drop_disabled({"spec": spec}, old=None, gates=self._gates)
        return enabled["spec"]  # type: ignore[no-any-return]

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        restore_fields(content, old, "status")
        if documents.same(content["spec"], old["spec"]):
            restore_fields(content, old, "spec")
        if self._drops_fields:
            content.update(podfields.drop_disabled(content, old=dict(old), gates=self._gates))

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        restore_fields(content, old, "spec")
        current = content.setdefault("status", {})
        previous = old.get("status") or {}
        if not current.get("qosClass") and previous.get("qosClass"):
            current["qosClass"] = previous["qosClass"]
        content.update(podfields.keep_status(content, dict(old)))
        for field in podfields.LISTS:
            if content["status"].get(field) == []:
                del content["status"][field]
        if self._drops_fields:
            content.update(podfields.drop_disabled(content, old=dict(old), gates=self._gates))

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        if write.subresource == EPHEMERAL_CONTAINERS:
            self._update_ephemeral_containers(subject, old)
            return
        if write.subresource == RESIZE:
            self._resize(subject, old)
            return
        if subject.touches == _CLAIM_NAMES and not self._drops_fields:
            # Only the names of claims change, so nothing else needs preparation or validation.
            subject.checked = objectmeta.decoded(subject.metadata)
            problems = list(
                claim_rules.check_claim_statuses(self._view(subject.content, subject), self._view(old.content, subject))
            )
            if problems:
                raise self._refusal(problems, subject)
            return
        # A kubelet can change neither owners nor deletion.
        restore_fields(subject.metadata, old.metadata, "ownerReferences", "deletionTimestamp")
        super().update_status(subject, old, write)

    def _update_ephemeral_containers(self, subject: Subject, old: Subject) -> None:
        """Take over the ephemeral containers of the client, and nothing else."""
        spec = {**old.content["spec"], "ephemeralContainers": subject.content["spec"].get("ephemeralContainers") or []}
        if not spec["ephemeralContainers"]:
            del spec["ephemeralContainers"]
        content = subject.content = {**old.content, "spec": spec}
        restore_fields(subject.metadata, old.metadata, "deletionTimestamp", "ownerReferences")
        if self._is_changed(content, old.content):
            subject.metadata["generation"] = old.metadata.get("generation", 0) + 1
        problems = list(self._check_metadata_update(subject, old))
        problems += self.check(content, subject)
        problems += changes.check_ephemeral_containers(spec, old.content["spec"], old.metadata.get("annotations") or {})
        if problems:
            raise self._refusal(problems, subject)

    def _resize(self, subject: Subject, old: Subject) -> None:
        """Take over the cpu and memory of containers, and nothing else."""
        before: Document = {**old.content, "metadata": old.metadata}
        spec = resizing.prepared(subject.content["spec"], old.content["spec"])
        podspec.default_requests(spec)
        is_changed = not documents.same(spec, old.content["spec"])
        content = subject.content = {**old.content, "spec": spec if is_changed else old.content["spec"]}
        for field in _KEPT_ON_RESIZE:
            restore_fields(subject.metadata, old.metadata, field)
        if is_changed:
            subject.metadata["generation"] = old.metadata.get("generation", 0) + 1
        problems = list(resizing.check_pod(old.metadata, before))
        if not problems:
            problems = [*self._check_metadata_update(subject, old), *self.check(content, subject)]
            current = (old.content.get("status") or {}).get("qosClass") or _qos_class(old.content["spec"])
            problems += resizing.check(spec, before, qos_class=_qos_class(spec), old_class=current)
        if problems:
            raise self._refusal(problems, subject)

    def check(self, content: Document, subject: Subject) -> Errors:
        """Yield the problems of spec and annotations; DocumentStrategy checks other metadata."""
        spec, annotations = content["spec"], subject.metadata.get("annotations") or {}
        if annotations:
            yield from pod_rules.check_annotations(annotations, spec)
        yield from self._interner.part(spec).derive(_problems, pod_rules.MIRROR_ANNOTATION in annotations)

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from pod_rules.check_new(content["spec"])
        annotations = subject.metadata.get("annotations")
        if annotations:
            yield from apparmor.check_match(annotations, content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["spec"] is not old["spec"]:
            yield from changes.check(content["spec"], old["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        current, before = content.get("status") or {}, old.get("status") or {}
        yield from status_rules.check(current, before, spec=content["spec"])
        yield from claim_rules.check_claim_statuses(self._view(content, subject), self._view(old, subject))
        yield from status_rules.check_addresses(current, before)

    def _check_metadata_update(self, subject: Subject, old: Subject) -> Errors:
        yield from super()._check_metadata_update(subject, old)
        annotations, before = subject.metadata.get("annotations"), old.metadata.get("annotations")
        if annotations != before:
            yield from pod_rules.check_changed_annotations(annotations or {}, before or {})

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        problems = names.dns1123_label(subject.metadata.get("name", ""))
        if problems:
            text = " ".join(problems)
            yield (
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{text}]"
            )
        spec, annotations = content["spec"], subject.metadata.get("annotations")
        if annotations:
            yield from warnings.find(spec, SPEC, annotations=annotations, notes=METADATA.child("annotations"))
        else:
            yield from self._interner.part(spec).derive(_warnings_about)

    def _view(self, content: Mapping[str, Any], subject: Subject) -> pod.Pod:
        """Return the typed pod that the rules about claims read."""
        try:
            spec = self._interner.part(content["spec"]).derive(_typed)
            current = msgspec.convert(content.get("status", {}), pod.PodStatus, dec_hook=hooks.decode)
        except msgspec.ValidationError:
            # The document has nulls, which decoding a whole pod accepts.
            view = codec.decode({"kind": "Pod", "apiVersion": "v1", **content, "metadata": subject.metadata})
            assert isinstance(view, pod.Pod), "a Pod decodes to a Pod"
            return view
        assert subject.checked is not None, "metadata is prepared before anything is checked"
        return pod.Pod(metadata=subject.checked, spec=spec, status=current)


class PodFastPath(FastPath):
    """Fast path for pods, and changes of pods, that differ in the names of pods and of their claims."""

    repeats_bodies = True

    def mark_name(self, name: str) -> Marks | None:
        # There is a warning about names that are no labels.
        return Marks((name,)) if "." not in name and len(name) <= names.LABEL_LENGTH else None

    def mark_status(self, status: Any) -> Marks | None:
        claims = [each.resource_claim_name for each in status.resource_claim_statuses]
        return Marks(tuple([name for name in claims if name is not None]))

    def mark_stored(self, document: Mapping[str, Any]) -> Marks | None:
        own = document["metadata"]
        statuses = document["status"].get("resourceClaimStatuses") or ()
        claims = [each["resourceClaimName"] for each in statuses if "resourceClaimName" in each]
        return Marks((own["name"], own["uid"], *claims), versions=(own["resourceVersion"],))


def grace_period(document: Mapping[str, Any], requested: int | None) -> int:
    """Return the seconds that a pod has to end, given the grace period that a deletion requests."""
    spec = document.get("spec") or {}
    period = requested if requested is not None else spec.get("terminationGracePeriodSeconds", 0)
    phase = (document.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else int(period)


def _problems(spec: Document, is_mirror: bool) -> Found:  # noqa: FBT001 - part of the key that the problems are derived by
    return [*spec_rules.check(spec, SPEC, is_pod=True, is_mirror=is_mirror), *pod_rules.check(spec)]


def _warnings_about(spec: Document) -> Sequence[str]:
    return tuple(warnings.find(spec, SPEC, annotations={}, notes=METADATA))


def _typed(spec: Document) -> pod.PodSpec:
    return msgspec.convert(spec, pod.PodSpec, dec_hook=hooks.decode)


def _default_addresses(status: Document) -> Document:
    """Return a status with podIP and podIPs in agreement; old kubelets set only podIP."""
    single, every = status.get("podIP"), status.get("podIPs") or [{"ip": status.get("podIP")}]
    first = every[0].get("ip", "")
    return {**status, "podIP": single or first, "podIPs": every if single in (None, "", first) else [{"ip": single}]}


def _qos_class(spec: Document) -> str:
    """Return the quality of service class of a pod."""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    owners = [spec] if spec.get("resources") else containers
    needs = [each.get("resources") or {} for each in owners]
    return qos.classify((_amounts(each.get("requests") or {}), _amounts(each.get("limits") or {})) for each in needs)


def _amounts(resources: Mapping[str, Any]) -> dict[str, quantity.Quantity]:
    return {name: hooks.decode(quantity.Quantity, resources[name]) for name in qos.COUNTED if name in resources}
