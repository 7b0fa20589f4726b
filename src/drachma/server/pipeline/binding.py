"""Bindings: the assignment of a pod to a node."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import codec, meta, struct
from drachma.server import status
from drachma.server.admission.proposal import Proposal
from drachma.server.calls import options
from drachma.server.calls.call import Call
from drachma.server.pipeline import intent, podcalls, preconditions
from drachma.server.pipeline.answer import Answer, Verbatim
from drachma.server.pipeline.phases import Operation
from drachma.server.pipeline.plan import Plan
from drachma.server.pipeline.services import Services
from drachma.server.presentation import negotiation
from drachma.server.surface.strategy import Marks, Write
from drachma.store import record
from drachma.validation import fielderror, refusal
from drachma.validation.path import Path


class _Node(struct.Struct, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""


class Assignment(struct.Struct, frozen=True, kw_only=True):
    """Fields of a Binding that the server reads. uid and resourceVersion in its metadata are preconditions."""

    metadata: meta.ObjectMeta = meta.ABSENT_META
    target: _Node = _Node()


def plan(services: Services, call: Call) -> Plan:
    """Plan the assignment of a pod without a node."""
    media_type = negotiation.body_type(call.body.media_type)
    write_options = options.read_write_options(call.query, "CreateOptions")
    assignment = podcalls.read(call, Assignment, write_options, media_type=media_type)
    if assignment.metadata.name != call.target.name:
        raise status.bad_request("name in URL does not match name in Binding object")
    _check_node(assignment.target)
    binding = Binding(services, assignment, services.write(call), write_options=write_options)
    return Plan(binding, lambda _outcome: Answer(201, Verbatim(status.success(201))))


class Binding(intent.UniqueIntent):
    """Intent to assign a pod to a node."""

    def __init__(
        self, services: Services, assignment: Assignment, write: Write, *, write_options: options.WriteOptions
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = write_options.is_dry_run
        self._services = services
        self._options = write_options
        self._assignment = assignment

    def decide(self, get: intent.Get) -> intent.Replace:
        write = self.write
        existing = get(record.Key(write.resource.key, write.namespace, write.name))
        if existing is None:
            raise status.not_found(write.resource, write.name)
        self._check(existing)
        bound = self._assign_node(existing.value)
        subject = write.served.strategy.load(bound)
        proposal = Proposal(subject, write, options=self._options, get=get, stored_object=existing)
        self._services.phases.run(Operation.BIND, proposal)
        return intent.Replace(existing, bound)

    def imprint(self, get: intent.Get) -> intent.Imprint | None:
        write = self.write
        key = record.Key(write.resource.key, write.namespace, write.name)
        existing = None if self.is_dry_run else get(key)
        if existing is None or not existing.data:
            return None
        return intent.Imprint(
            intent.circumstances(self, self._options),
            key,
            Marks((self._assignment.target.name,)),
            codec.encode_part(self._assignment),
            existing,
            existing.uid,
            self._services.phases,
            Operation.BIND,
            self._make_specimen,
        )

    def _make_specimen(self, write: Write, body: bytes, _stored: record.Record | None) -> "Binding":
        assignment = codec.decode_part(body, Assignment)
        return Binding(self._services, assignment, write, write_options=self._options)

    def _check(self, existing: record.Record) -> None:
        target, pod, name = self._assignment.metadata, existing.value, self.write.name
        if target.uid and target.uid != existing.uid:
            raise preconditions.other_uid(target.uid, self.write, current=existing.uid)
        if target.resource_version and target.resource_version != pod["metadata"]["resourceVersion"]:
            raise preconditions.other_version(target.resource_version, existing, self.write)
        spec = pod.get("spec") or {}
        if "deletionTimestamp" in pod["metadata"]:
            detail = f"pod {name} is being deleted, cannot be assigned to a host"
        elif spec.get("nodeName"):
            detail = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
        elif spec.get("schedulingGates"):
            detail = f"pod {name} has non-empty .spec.schedulingGates"
        else:
            return
        message = f'Operation cannot be fulfilled on pods/binding "{name}": {detail}'
        raise status.failure(409, "Conflict", message, details={"name": name, "kind": "pods/binding"})

    def _assign_node(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        own = self._assignment.metadata
        metadata = dict(pod["metadata"])
        for field, added in (("annotations", own.annotations), ("labels", own.labels)):
            if added:
                metadata[field] = {**metadata.get(field, {}), **added}
        current = {name: value for name, value in (pod.get("status") or {}).items() if name != "nominatedNodeName"}
        scheduled = {"type": "PodScheduled", "status": "True"}
        current["conditions"] = podcalls.set_condition(current.get("conditions") or [], scheduled, write=self.write)
        spec = {**pod["spec"], "nodeName": self._assignment.target.name}
        return {**pod, "metadata": metadata, "spec": spec, "status": current}


def _check_node(node: _Node) -> None:
    problems = []
    at = Path("target")
    if node.kind not in ("", "Node"):
        problems.append(fielderror.not_supported(at.child("kind"), node.kind, ("Node", "<empty>")))
    if not node.name:
        problems.append(fielderror.required(at.child("name")))
    if problems:
        raise status.unclassified(refusal.aggregate(problems))
