"""The admission check that requests nodes: ProvisioningRequests of a workload, and the states that follow from them.

A workload with quota gets one request for each of its checks. The request's conditions decide about the check:
provisioned is Ready, failed is Retry with a backoff until the retries are used up. Nothing is written here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import structs

from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.jobs.interface import Document
from drachma.queueing.kinds import workload
from drachma.queueing.kinds.provisioning import ProvisioningRequestConfigSpec
from drachma.queueing.workloads import podsetinfo, workloadstate
from drachma.queueing.workloads.workloadevents import NORMAL, Event

CONFIG_KIND: Final = "ProvisioningRequestConfig"
MANAGED: Final = "kueue.x-k8s.io/managed"
READY: Final = "Ready"

_PARAMETERS: Final = "provreq.kueue.x-k8s.io/"
"""Prefix of annotations of workloads that become parameters of requests."""
_REQUEST: Final = "autoscaling.x-k8s.io/provisioning-request"
_CLASS: Final = "autoscaling.x-k8s.io/provisioning-class-name"
_LONGEST_NAME: Final = 247
_HASH_LENGTH: Final = 5
_SCHEDULING_FIELDS: Final = (
    "nodeSelector", "affinity", "tolerations", "schedulerName", "priorityClassName", "priority", "overhead",
    "topologySpreadConstraints", "resourceClaims", "runtimeClassName", "resources",
)  # fmt: skip


class NewRequest(NamedTuple):
    """A request to create, and the pod templates to create before it."""

    request: dict[str, Any]
    templates: list[dict[str, Any]]


class CheckOutcome(NamedTuple):
    """Result of one step of a workload's checks."""

    workload: workload.Workload
    new: Sequence[NewRequest] = ()
    obsolete: Sequence[str] = ()
    """Names of requests to delete."""
    events: Sequence[Event] = ()


class Around(NamedTuple):
    """Objects that the checks of a workload depend on."""

    configs: Mapping[str, ProvisioningRequestConfigSpec | None]
    """Parameters by check; None if a check is not active."""
    requests: Sequence[Document]
    """Requests that the workload owns."""
    pod_sets: Sequence[Document]
    """Pod sets of the workload as whole documents."""
    flavors: podsetinfo.Flavors
    gates: Gates


def take_step(wl: workload.Workload, around: Around, now: datetime) -> CheckOutcome:
    """Return the workload with the states of its checks, and the requests that it needs. Raises PodSetConflictError."""
    is_finished, is_evicted = workloadstate.is_finished(wl), workloadstate.is_evicted(wl)
    names = [each["metadata"]["name"] for each in around.requests]
    if is_finished or (is_evicted and around.gates.on(Gate.CLEANUP_PROVISIONING_REQUESTS)):
        return CheckOutcome(wl, obsolete=names)
    if is_evicted or not workloadstate.has_reservation(wl):
        return CheckOutcome(wl)
    return _Step(wl, around, now).run()


class _Step:
    def __init__(self, wl: workload.Workload, around: Around, now: datetime) -> None:
        self._workload = wl
        self._around: Final = around
        self._now: Final = now
        self._events: Final[list[Event]] = []
        self._current: Final = self._current_requests()

    def run(self) -> CheckOutcome:
        for name, config in self._around.configs.items():
            self._sync(name, config)
        current_names = {each["metadata"]["name"] for each in self._current.values()}
        names = (each["metadata"]["name"] for each in self._around.requests)
        obsolete = [name for name in names if name not in current_names]
        new = [
            self._new_request(name, config, attempt)
            for name, config in self._around.configs.items()
            if config is not None and (attempt := self._next_attempt(name, config)) is not None
        ]
        for each in new:
            message = f'Created ProvisioningRequest: "{each.request["metadata"]["name"]}"'
            self._record("ProvisioningRequestCreated", message)
        return CheckOutcome(self._workload, new, obsolete, tuple(self._events))

    def _record(self, reason: str, message: str) -> None:
        self._events.append(Event(workloadstate.key(self._workload), NORMAL, reason, message))

    # Requests

    def _current_requests(self) -> dict[str, Document]:
        """Return the latest request of each check that fits its parameters."""
        current: dict[str, Document] = {}
        for check, config in self._around.configs.items():
            if config is None or not self._needs_request(config):
                continue
            for request in self._around.requests:
                attempt = self._attempt(request, check)
                if attempt and _has_config(request, config):
                    previous = current.get(check)
                    if previous is None or self._attempt(previous, check) < attempt:
                        current[check] = request
        return current

    def _attempt(self, request: Document, check: str) -> int:
        """Return the number of the attempt that a request of a check is, or 0 if it belongs to another check."""
        prefix = _short_name(f"{self._workload.metadata.name}-{check}-")
        name = str(request["metadata"]["name"])
        digits = name[len(prefix) :] if name.startswith(prefix) else ""
        return int(digits) if digits.isascii() and digits.isdigit() else 0

    def _needs_request(self, config: ProvisioningRequestConfigSpec) -> bool:
        return bool(self._merged_pod_sets(config))

    def _merged_pod_sets(self, config: ProvisioningRequestConfigSpec) -> list[tuple[Document, int]]:
        """Return the pod sets of a request with their counts; equal ones are one pod set, if the parameters say so."""
        admission = self._workload.status.admission
        assignments = {} if admission is None else {each.name: each for each in admission.pod_set_assignments}
        merged: list[tuple[Document, int]] = []
        for pod_set in self._around.pod_sets:
            assignment = assignments.get(pod_set["name"])
            if pod_set.get("count", 0) <= 0 or not _uses(pod_set, config.managed_resources):
                continue
            if assignment is None:
                problem = f"missing assignment for PodSet {pod_set['name']}"
                raise podsetinfo.PodSetConflictError(f"inconsistent podSet assignments: {problem}")
            count = pod_set["count"] if assignment.count is None else assignment.count
            if count <= 0:
                continue
            for position, (merged_set, merged_count) in enumerate(merged):
                if _can_merge(merged_set, pod_set, config.pod_set_merge_policy):
                    merged[position] = (merged_set, merged_count + count)
                    break
            else:
                merged.append((pod_set, count))
        return merged

    def _next_attempt(self, check: str, config: ProvisioningRequestConfigSpec) -> int | None:
        """Return the number of the request that a check needs now, or None."""
        state = self._state(check)
        if state is None or state.state == READY or not self._needs_request(config):
            return None
        request = self._current.get(check)
        if request is None:
            return (state.retry_count or 0) + 1
        is_over = _is_true(request, "Failed") or (
            # An admitted workload keeps its nodes, whatever becomes of their reservation.
            _is_true(request, "BookingExpired") and not workloadstate.is_admitted(self._workload)
        )
        return self._attempt(request, check) + 1 if is_over and state.state == workloadstate.PENDING else None

    def _new_request(self, check: str, config: ProvisioningRequestConfigSpec, attempt: int) -> NewRequest:
        wl = self._workload
        name = _short_name(f"{wl.metadata.name}-{check}-{attempt}")
        infos = {each.name: each for each in podsetinfo.admission_infos(wl, self._around.flavors, self._around.gates)}
        owner = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "name": wl.metadata.name,
            "uid": wl.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {"namespace": wl.metadata.namespace, "labels": {MANAGED: "true"}, "ownerReferences": [owner]}
        templates, pod_sets = [], []
        for pod_set, count in self._merged_pod_sets(config):
            template_name = _short_name(f"ppt-{name}-{pod_set['name']}")
            template = _with_requests(infos[pod_set["name"]].applied(pod_set.get("template") or {}))
            templates.append(
                {
                    "apiVersion": "v1",
                    "kind": "PodTemplate",
                    "metadata": {"name": template_name, **metadata},
                    "template": template,
                }
            )
            pod_sets.append({"podTemplateRef": {"name": template_name}, "count": count})
        annotations = {
            key.removeprefix(_PARAMETERS): value
            for key, value in wl.metadata.annotations.items()
            if key.startswith(_PARAMETERS)
        }
        spec = {
            "provisioningClassName": config.provisioning_class_name,
            "parameters": {**config.parameters, **annotations},
            "podSets": pod_sets,
        }
        request = {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        return NewRequest(request, templates)

    # States

    def _state(self, check: str) -> workload.AdmissionCheckState | None:
        return next((each for each in self._workload.status.admission_checks if each.name == check), None)

    def _sync(self, check: str, config: ProvisioningRequestConfigSpec | None) -> None:
        before = self._state(check)
        if before is None:
            return
        after = before
        request = self._current.get(check)
        if config is None:
            after = structs.replace(before, state=workloadstate.PENDING, message="the check is not active")
        elif not self._needs_request(config):
            if before.state != READY:
                message = "the provisioning request is not needed"
                after = structs.replace(before, state=READY, message=message, pod_set_updates=())
        elif request is not None:
            after = self._followed(before, request, config)
        if after == before:
            return
        if after.state != before.state:
            after = structs.replace(after, last_transition_time=self._now)
            message = f"Admission check {check} updated state from {before.state} to {after.state}"
            self._record(
                "AdmissionCheckUpdated", f"{message} with message: {after.message}" if after.message else message
            )
        states = tuple(after if each is before else each for each in self._workload.status.admission_checks)
        self._workload = workloadstate.with_status(self._workload, admission_checks=states)

    def _followed(
        self, state: workload.AdmissionCheckState, request: Document, config: ProvisioningRequestConfigSpec
    ) -> workload.AdmissionCheckState:
        """Return the state of a check after the conditions of its request."""
        wl = self._workload
        if _is_true(request, "Failed"):
            return self._retried(state, request, config, "Failed", "failure")
        if _is_true(request, "CapacityRevoked"):
            if not workloadstate.is_active(wl):
                return state
            return structs.replace(state, state="Rejected", message=_message(request, "CapacityRevoked"))
        if _is_true(request, "BookingExpired"):
            if workloadstate.is_admitted(wl):
                return state
            return self._retried(state, request, config, "BookingExpired", "booking expired")
        if _is_true(request, "Provisioned"):
            if state.state == READY:
                return state
            message = _message(request, "Provisioned")
            return structs.replace(
                state, state=READY, message=message, pod_set_updates=self._pod_set_updates(request, config)
            )
        if _is_true(request, "Accepted"):
            if _condition(request, "Provisioned") is None:
                return state
            return structs.replace(state, state=workloadstate.PENDING, message=_message(request, "Provisioned"))
        return structs.replace(state, state=workloadstate.PENDING, message="")

    def _retried(
        self,
        state: workload.AdmissionCheckState,
        request: Document,
        config: ProvisioningRequestConfigSpec,
        condition: str,
        cause: str,
    ) -> workload.AdmissionCheckState:
        """Return the state after an attempt that came to nothing: Retry, or Rejected after the last attempt."""
        attempt, retries = self._attempt(request, state.name), state.retry_count or 0
        strategy = config.retry_strategy
        message = _message(request, condition)
        if attempt > strategy.backoff_limit_count:
            return structs.replace(state, state="Rejected", message=message)
        state = structs.replace(state, message=f"Retrying after {cause}: {message}")
        if attempt <= retries:
            return state
        seconds = min(strategy.backoff_base_seconds * 2**retries, strategy.backoff_max_seconds)
        return structs.replace(state, state="Retry", requeue_after_seconds=seconds)

    def _pod_set_updates(
        self, request: Document, config: ProvisioningRequestConfigSpec
    ) -> tuple[workload.PodSetUpdate, ...]:
        name = request["metadata"]["name"]
        details = (request.get("status") or {}).get("provisioningClassDetails") or {}
        selectors = () if config.pod_set_updates is None else config.pod_set_updates.node_selector
        node_selector = {
            each.key: details[each.value_from_provisioning_class_detail]
            for each in selectors
            if each.value_from_provisioning_class_detail in details
        }
        annotations = {_REQUEST: name, _CLASS: request["spec"]["provisioningClassName"]}
        names = {_short_name(f"ppt-{name}-{each['name']}"): each["name"] for each in self._around.pod_sets}
        return tuple(
            workload.PodSetUpdate(
                name=names.get(each["podTemplateRef"]["name"], ""),
                annotations=annotations,
                node_selector=node_selector,
            )
            for each in request["spec"]["podSets"]
        )


def _condition(request: Document, kind: str) -> Document | None:
    conditions = (request.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def _is_true(request: Document, kind: str) -> bool:
    condition = _condition(request, kind)
    return condition is not None and condition["status"] == "True"


def _message(request: Document, kind: str) -> str:
    return str((_condition(request, kind) or {}).get("message", ""))


def _has_config(request: Document, config: ProvisioningRequestConfigSpec) -> bool:
    """Return True if a request has the class and the parameters of a check."""
    spec = request["spec"]
    parameters = spec.get("parameters") or {}
    has_parameters = all(parameters.get(name) == value for name, value in config.parameters.items())
    return has_parameters and bool(spec["provisioningClassName"] == config.provisioning_class_name)


def _uses(pod_set: Document, managed: Sequence[str]) -> bool:
    """Return True if the pods of a set request a managed resource; no managed resources mean all."""
    spec = (pod_set.get("template") or {}).get("spec") or {}
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    return not managed or any(
        name in managed
        for each in containers
        for field in ("requests", "limits")
        for name in (each.get("resources") or {}).get(field) or ()
    )


def _can_merge(one: Document, other: Document, policy: str | None) -> bool:
    if policy == "IdenticalPodTemplates":
        return bool(one.get("template") == other.get("template"))
    if policy == "IdenticalWorkloadSchedulingRequirements":
        return _requirements(one) == _requirements(other)
    return False


def _requirements(pod_set: Document) -> tuple[Any, ...]:
    """Return the fields of the pods of a set that matter for their nodes."""
    spec = (pod_set.get("template") or {}).get("spec") or {}
    containers = [
        [(each.get("resources"), each.get("restartPolicy"), each.get("ports")) for each in spec.get(field) or ()]
        for field in ("initContainers", "containers")
    ]
    return (*containers, *(spec.get(field) for field in _SCHEDULING_FIELDS))


def _with_requests(template: Document) -> dict[str, Any]:
    """Return a pod template whose containers request what they are limited to, unless they request another amount."""
    spec = dict(template.get("spec") or {})
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_requesting(each) for each in spec[field]]
    return {**template, "spec": spec}


def _requesting(container: Document) -> Document:
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return container
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def _short_name(name: str) -> str:
    """Return a name that is short enough for an object; the end of a long one is a hash."""
    if len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[:_LONGEST_NAME]}-{digest[:_HASH_LENGTH]}"
