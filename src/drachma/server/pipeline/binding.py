"""Binding: a pod gets its node."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import meta, struct
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
from drachma.server.surface.strategy import Write
from drachma.store import record
from drachma.validation import fielderror, refusal
from drachma.validation.path import Path


class _Node(struct.Struct, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""


class Assignment(struct.Struct, frozen=True, kw_only=True):
    """A Binding as far as it is looked at; what its metadata says about uid and version of the pod must hold."""

    metadata: meta.ObjectMeta = meta.ABSENT_META
    target: _Node = _Node()


def plan(services: Services, call: Call) -> Plan:
    """Assigns a pod that has no node yet to one."""
    media_type = negotiation.body_type(call.body.media_type)
    wanted = options.for_write(call.query, "CreateOptions")
    assignment = podcalls.read(call, Assignment, wanted, media_type=media_type)
    if assignment.metadata.name != call.target.name:
        raise status.bad_request("name in URL does not match name in Binding object")
    _check_node(assignment.target)
    binding = Binding(services, assignment, services.write(call), wanted=wanted)
    return Plan(binding, lambda _outcome: Answer(201, Verbatim(status.success(201))))


class Binding:
    """Assigns a pod to a node."""

    def __init__(
        self, services: Services, assignment: Assignment, write: Write, *, wanted: options.WriteOptions
    ) -> None:
        self.write: Final = write
        self.is_dry_run: Final = wanted.is_dry_run
        self._phases = services.phases
        self._options = wanted
        self._assignment = assignment

    def decide(self, get: intent.Get) -> intent.Replace:
        write = self.write
        stored = get(record.Key(write.resource.key, write.namespace, write.name))
        if stored is None:
            raise status.not_found(write.resource, write.name)
        self._check(stored)
        bound = self._bound(stored.value)
        subject = write.served.strategy.load(bound)
        proposal = Proposal(subject, write, options=self._options, get=get, stored=stored)
        self._phases.run(Operation.BIND, proposal)
        return intent.Replace(stored, bound)

    def _check(self, stored: record.Record) -> None:
        meant, pod, name = self._assignment.metadata, stored.value, self.write.name
        if meant.uid and meant.uid != stored.uid:
            raise preconditions.other_uid(meant.uid, self.write, current=stored.uid)
        if meant.resource_version and meant.resource_version != pod["metadata"]["resourceVersion"]:
            raise preconditions.other_version(meant.resource_version, stored, self.write)
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

    def _bound(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        own = self._assignment.metadata
        metadata = dict(pod["metadata"])
        for field, added in (("annotations", own.annotations), ("labels", own.labels)):
            if added:
                metadata[field] = {**metadata.get(field, {}), **added}
        current = {name: value for name, value in (pod.get("status") or {}).items() if name != "nominatedNodeName"}
        scheduled = {"type": "PodScheduled", "status": "True"}
        current["conditions"] = podcalls.with_condition(current.get("conditions") or [], scheduled, write=self.write)
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
