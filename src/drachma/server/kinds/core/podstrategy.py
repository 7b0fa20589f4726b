"""Pods: defaults, what the server says about a new one, and what may change once a pod exists."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from drachma.api import codec, hooks, meta, pod
from drachma.server import objectmeta
from drachma.server.kinds import sharing
from drachma.server.kinds.core import podspec, qos
from drachma.server.kinds.document import Document, taken
from drachma.server.kinds.templated import TemplatedStrategy
from drachma.server.schema import emptyfields
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import pod as claim_rules
from drachma.validation import podfields
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, SPEC
from drachma.validation.podspec import changes, warnings
from drachma.validation.podspec import pod as pod_rules
from drachma.validation.podspec import spec as spec_rules
from drachma.validation.podspec import status as status_rules
from drachma.values import names

_GATED: Final = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


_REMEMBERED: Final = 1024
"""How many specs are kept to be shared."""


class _New(NamedTuple):
    """What becomes of a spec in a new pod; shared by all such pods."""

    spec: Document
    status: Document


class PodStrategy(TemplatedStrategy):
    counts_generations = True
    rechecks_names = True

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        # A spec is filled once, when it gets its defaults.
        besides = {name: field for name, field in self._schema.fields.items() if name != "spec"}
        self._beside_spec = msgspec.structs.replace(self._schema, fields=besides)
        self._prepared = sharing.Outcomes[Document, _New](_REMEMBERED)
        self._sound = sharing.Outcomes[Document, Literal[True]](_REMEMBERED)
        self._oddities = sharing.Outcomes[Document, tuple[str, ...]](_REMEMBERED)
        self._typed = sharing.Outcomes[Document, pod.PodSpec](_REMEMBERED)

    def read(self, document: Document, write: Write) -> Subject:
        subject = super().read(document, write)
        given = document.get("status")
        cleared: Document = {field: [] for field in podfields.LISTS if given.get(field) == []} if given else {}
        if cleared:
            # In a status, an empty list says more than none (see podfields.keep_status).
            subject.content["status"] = {**(subject.content.get("status") or {}), **cleared}
        return subject

    def document(self, subject: Subject) -> Document:
        document = {"kind": self.resource.kind, "apiVersion": self._api_version, "metadata": subject.metadata}
        document.update(subject.content)
        emptyfields.fill(document, self._beside_spec)
        return document

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        current = content.get("status")
        if current and (current.get("podIP") or current.get("podIPs")):
            content["status"] = _with_address(current)

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
        given = content["spec"]
        new = self._prepared.find(given)
        if new is None:
            new = self._prepare(given)
            self._prepared.remember(given, new)
        content["spec"], content["status"] = new.spec, new.status
        if new.spec.get("schedulingGates"):
            gated = {**_GATED, "lastTransitionTime": objectmeta.time_text(write.now)}
            content["status"] = {**new.status, "conditions": [gated]}

    def _prepare(self, given: Document) -> _New:
        spec = dict(given)
        podspec.default_whole(spec)
        current: Document = {"phase": "Pending", "qosClass": qos.of(spec)}
        kept = podfields.drop_disabled({"spec": spec, "status": current}, old=None, gates=self._gates)
        return _New(kept["spec"], kept["status"])

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        taken(content, old, "status")
        self._drop_disabled(content, old)

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        taken(content, old, "spec")
        current = content.setdefault("status", {})
        previous = old.get("status") or {}
        if not current.get("qosClass") and previous.get("qosClass"):
            current["qosClass"] = previous["qosClass"]
        content.update(podfields.keep_status(content, dict(old)))
        for field in podfields.LISTS:
            if content["status"].get(field) == []:
                del content["status"][field]
        self._drop_disabled(content, old)

    def update_status(self, subject: Subject, old: Subject, write: Write) -> None:
        # A kubelet cannot change who owns a pod, or whether it is deleted.
        taken(subject.metadata, old.metadata, "ownerReferences", "deletionTimestamp")
        super().update_status(subject, old, write)

    def _drop_disabled(self, content: Document, old: Mapping[str, Any]) -> None:
        kept = podfields.drop_disabled(content, old=dict(old), gates=self._gates)
        if "status" in content and len(kept["status"]) == len(content["status"]):
            # Nothing was dropped; what is shared stays so.
            kept["status"] = content["status"]
        content.update(kept)

    def check(self, content: Document, subject: Subject) -> Errors:
        """Like specs are looked at once; rules about metadata are those of all kinds, and of updates."""
        spec, annotations = content["spec"], subject.metadata.get("annotations") or {}
        yield from pod_rules.check_annotations(annotations, spec)
        is_mirror = pod_rules.MIRROR_ANNOTATION in annotations
        if not is_mirror and self._sound.find(spec):
            return
        problems = [*spec_rules.check(spec, SPEC, is_pod=True, is_mirror=is_mirror), *pod_rules.check(spec)]
        if not problems and not is_mirror:
            self._sound.remember(spec, True)  # noqa: FBT003 - there is nothing else to say
        yield from problems

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from pod_rules.check_new(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["spec"] is not old["spec"]:
            yield from changes.check(content["spec"], old["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        current, before = content.get("status") or {}, old.get("status") or {}
        yield from status_rules.check(current, before, spec=content["spec"])
        yield from claim_rules.check_status(self._view(content, subject), self._view(old, subject))
        yield from status_rules.check_addresses(current, before)

    def _check_metadata_update(self, subject: Subject, old: Subject) -> Errors:
        yield from super()._check_metadata_update(subject, old)
        annotations, before = subject.metadata.get("annotations"), old.metadata.get("annotations")
        if annotations != before:
            yield from pod_rules.check_changed_annotations(annotations or {}, before or {})

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        problems = names.dns1123_label(subject.metadata.get("name", ""))
        if problems:
            shown = " ".join(problems)
            yield (
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{shown}]"
            )
        spec, annotations = content["spec"], subject.metadata.get("annotations")
        if annotations:
            yield from warnings.find(spec, SPEC, annotations=annotations, notes=METADATA.child("annotations"))
            return
        found = self._oddities.find(spec)
        if found is None:
            found = tuple(warnings.find(spec, SPEC, annotations={}, notes=METADATA))
            self._oddities.remember(spec, found)
        yield from found

    def grace_period(self, document: Mapping[str, Any], asked: int | None) -> int:
        spec = document.get("spec") or {}
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
        phase = (document.get("status") or {}).get("phase")
        if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
            return 0
        return 1 if period < 0 else int(period)

    def _view(self, content: Mapping[str, Any], subject: Subject) -> pod.Pod:
        """The part of a pod that the rules about claims look at."""
        own, spec = _own(subject), content["spec"]
        typed = self._typed.find(spec)
        try:
            if typed is None:
                typed = msgspec.convert(spec, pod.PodSpec, dec_hook=hooks.decode)
                self._typed.remember(spec, typed)
            current = msgspec.convert(content.get("status", {}), pod.PodStatus, dec_hook=hooks.decode)
        except msgspec.ValidationError:
            # There are nulls, which decoding a whole pod knows how to read.
            view = codec.decode({"kind": "Pod", "apiVersion": "v1", **content, "metadata": subject.metadata})
            assert isinstance(view, pod.Pod), "a Pod decodes to a Pod"
            return view
        return pod.Pod(metadata=own, spec=typed, status=current)


def _own(subject: Subject) -> meta.ObjectMeta:
    assert subject.checked is not None, "metadata is prepared before anything is checked"
    return subject.checked


def _with_address(given: Document) -> Document:
    """A status whose single address is the first of all; the single one is what old kubelets know."""
    single, every = given.get("podIP"), given.get("podIPs") or [{"ip": given.get("podIP")}]
    first = every[0].get("ip", "")
    return {**given, "podIP": single or first, "podIPs": every if single in (None, "", first) else [{"ip": single}]}
