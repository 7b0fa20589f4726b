"""State of a namespace in the form of scheduling-2.jsonl: what became of pods, claims, groups, workloads and rules."""

import collections
import copy
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

Document = dict[str, Any]

NAMESPACE = "scenario-of-one-test"
"""Namespace of a scenario; long enough that no other text contains it."""

KINDS = ("Pod", "ResourceClaim", "PodGroup", "CompositePodGroup", "ReplicaSet", "Job", "DeviceTaintRule")
"""Kinds that a state describes."""

_SHOWN_CONDITIONS = (
    "DisruptionTarget",
    "PodResizePending",
    "PodResizeInProgress",
    "PodGroupInitiallyScheduled",
    "CompositePodGroupInitiallyScheduled",
    "EvictionInProgress",
    "Complete",
    "Failed",
    "Suspended",
)
_EMPTY: tuple[Any, ...] = (None, {}, [], False, "")
_VOLATILE = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "generation",
        "lastTransitionTime",
        "timeAdded",
        "allocationTimestamp",
        "lastHeartbeatTime",
        "startTime",
        "selfLink",
        "completionTime",
    }
)
_GENERATED = re.compile("-[bcdfghjklmnpqrstvwxz2456789]{5}$")
_UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Names:
    """Names of objects in answers: the random end of a generated name is replaced."""

    def __init__(
        self, pods: Iterable[Document], claims: Iterable[Document], replica_sets: Iterable[Document] = ()
    ) -> None:
        of_pods = _readable_names(pods)
        of_claims: dict[str, str] = {}
        for name, readable in _readable_names(claims).items():
            generated = [each for each, text in of_pods.items() if each != text and name.startswith(f"{each}-")]
            of_claims[name] = of_pods[generated[0]] + readable[len(generated[0]) :] if generated else readable
        self._names = of_claims | _readable_names(replica_sets) | of_pods

    def of(self, name: str) -> str:
        """Return the name of an object in answers."""
        return self._names.get(name, name)

    def of_claim(self, name: str | None) -> str:
        """Return the name of a claim that may not exist any more."""
        return self._names.get(name or "") or _GENERATED.sub("-*****", name or "")

    def tidy(self, value: Any) -> Any:
        """Return a value without texts that differ from run to run."""
        text = json.dumps(value).replace(NAMESPACE, "<ns>")
        for name, readable in self._names.items():
            if name != readable:
                text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", readable, text)
        return json.loads(_TIME.sub("<time>", _UID.sub("<uid>", text)))


def names(objects: Mapping[str, Sequence[Document]]) -> Names:
    """Return the names of the objects of a namespace, by kind."""
    return Names(objects["Pod"], objects["ResourceClaim"], objects["ReplicaSet"])


def state(
    objects: Mapping[str, Sequence[Document]], events: Sequence[Document] = (), reasons: Collection[str] = ()
) -> Document:
    """Return the recorded form of the objects of a namespace, and of its events with some reasons."""
    called = names(objects)
    sections: dict[tuple[str, str], list[Document]] = collections.defaultdict(list)

    def add(section: str, name: str, record: Document) -> None:
        sections[section, name].append(_filled(record))

    for each in objects["Pod"]:
        add("pods", called.of(each["metadata"]["name"]), _pod(each, called))
    users = {each["metadata"]["uid"]: called.of(each["metadata"]["name"]) for each in objects["Pod"]}
    users |= {each["metadata"]["uid"]: f"PodGroup/{each['metadata']['name']}" for each in objects["PodGroup"]}
    for each in objects["ResourceClaim"]:
        add("claims", called.of(each["metadata"]["name"]), _claim(each, users, called))
    for section, kind in (("podGroups", "PodGroup"), ("compositePodGroups", "CompositePodGroup")):
        for each in objects[kind]:
            add(section, each["metadata"]["name"], _group(each, called))
    for each in objects["Job"]:
        counts = {key: each.get("status", {}).get(key) for key in ("active", "succeeded", "failed")}
        add("jobs", each["metadata"]["name"], {"conditions": _conditions(each), **counts})
    for each in objects["ReplicaSet"]:
        counts = {key: each.get("status", {}).get(key) for key in ("replicas", "fullyLabeledReplicas")}
        add("replicaSets", called.of(each["metadata"]["name"]), counts)
    for each in objects["DeviceTaintRule"]:
        add("rules", each["metadata"]["name"], {"conditions": _conditions(each)})
    answer: Document = {"pods": {}, "claims": {}}
    for (section, name), records in sections.items():
        numbered = sorted(records, key=lambda record: json.dumps(record, sort_keys=True))
        named = {name: records[0]} if len(records) == 1 else {f"{name}#{i}": each for i, each in enumerate(numbered)}
        answer.setdefault(section, {}).update(named)
    if reasons:
        rules = {each["metadata"]["uid"] for each in objects["DeviceTaintRule"]}
        answer["events"] = sorted({_event(each, called) for each in events if _is_shown(each, reasons, rules)})
    return called.tidy(answer)  # type: ignore[no-any-return]


def without_volatile_fields(value: Any) -> Any:
    """Return a document without the fields that differ from run to run."""
    if isinstance(value, dict):
        return {key: without_volatile_fields(item) for key, item in value.items() if key not in _VOLATILE}
    return [without_volatile_fields(item) for item in value] if isinstance(value, list) else value


def _pod(document: Document, called: Names) -> Document:
    status = document.get("status", {})
    scheduled = {each["type"]: each for each in status.get("conditions", ())}.get("PodScheduled", {})
    node = document["spec"].get("nodeName")
    if node and scheduled.get("status") == "False":
        # A failure may be written after the pod was bound.
        scheduled = {"status": "True"}
    allocatable = copy.deepcopy(status.get("nodeAllocatableResourceClaimStatuses"))
    for entry in allocatable or ():
        entry["resourceClaimName"] = called.of_claim(entry["resourceClaimName"])
    claims = status.get("resourceClaimStatuses") or ()
    record = {
        "node": node,
        "scheduled": scheduled.get("status"),
        "reason": scheduled.get("reason"),
        "message": scheduled.get("message"),
        "deleting": "deletionTimestamp" in document["metadata"],
        "claims": {each["name"]: called.of_claim(each.get("resourceClaimName")) for each in claims},
        "nodeAllocatable": allocatable,
        "conditions": _conditions(document),
        "nominated": status.get("nominatedNodeName"),
        "phase": None if status.get("phase") == "Pending" else status.get("phase"),
        "podReason": status.get("reason"),
        "podMessage": status.get("message"),
        "finalizers": document["metadata"].get("finalizers"),
    }
    extended = status.get("extendedResourceClaimStatus")
    if extended:
        keys = ("containerName", "resourceName", "requestName")
        mappings = sorted(extended.get("requestMappings") or (), key=lambda each: [each[key] for key in keys])
        record["extendedResourceClaim"] = {
            "name": called.of_claim(extended["resourceClaimName"]),
            "mappings": mappings,
        }
    return record


def _claim(document: Document, users: Mapping[str, str], called: Names) -> Document:
    metadata, status = document["metadata"], document.get("status", {})
    allocation = copy.deepcopy(status.get("allocation"))
    if allocation:
        allocation.pop("allocationTimestamp", None)
        for result in allocation.get("devices", {}).get("results", ()):
            if result.get("shareID"):
                result["shareID"] = "share"
            for toleration in result.get("tolerations") or ():
                toleration.pop("timeAdded", None)
    devices = [
        {key: value for key, value in each.items() if key != "shareID"}
        | {"conditions": {entry["type"]: entry["status"] for entry in each.get("conditions") or ()}}
        for each in status.get("devices") or ()
    ]
    owner = next((each for each in metadata.get("ownerReferences", ()) if each.get("controller")), None)
    is_extended = metadata.get("annotations", {}).get("resource.kubernetes.io/extended-resource-claim")
    return {
        "allocation": allocation,
        "reservedFor": sorted(users.get(each["uid"], "?") for each in status.get("reservedFor") or ()),
        "finalizers": metadata.get("finalizers"),
        "deleting": "deletionTimestamp" in metadata,
        "devices": devices,
        "owner": f"{owner['kind']}/{called.of(owner['name'])}" if owner and owner["kind"] != "Pod" else None,
        "requests": document["spec"]["devices"].get("requests") if is_extended else None,
    }


def _group(document: Document, called: Names) -> Document:
    statuses = document.get("status", {}).get("resourceClaimStatuses") or ()
    return {
        "conditions": _conditions(document),
        "claims": {each["name"]: called.of_claim(each.get("resourceClaimName")) for each in statuses},
        "finalizers": document["metadata"].get("finalizers"),
        "deleting": "deletionTimestamp" in document["metadata"],
    }


def _conditions(document: Document) -> Document:
    return {
        each["type"]: _filled({key: each.get(key) for key in ("status", "reason", "message")})
        for each in document.get("status", {}).get("conditions") or ()
        if each["type"] in _SHOWN_CONDITIONS
    }


def _event(document: Document, called: Names) -> str:
    subject = document["involvedObject"]
    name = called.of(subject.get("name", ""))
    return f"{subject.get('kind')}/{name} {document.get('type')} {document.get('reason')}: {document.get('message')}"


def _is_shown(document: Document, reasons: Collection[str], rules: Collection[str]) -> bool:
    is_near = document["metadata"]["namespace"] == NAMESPACE or document["involvedObject"].get("uid") in rules
    return is_near and document.get("reason") in reasons


def _filled(record: Document) -> Document:
    return {key: value for key, value in record.items() if value not in _EMPTY}


def _readable_names(objects: Iterable[Document]) -> dict[str, str]:
    readable = {}
    for each in objects:
        metadata = each["metadata"]
        base = metadata.get("generateName")
        owner = next((each for each in metadata.get("ownerReferences", ()) if each.get("controller")), None)
        if not base and owner and owner["kind"] in ("Job", "ReplicaSet"):
            base = f"{owner['name']}-"
        name = metadata["name"]
        readable[name] = f"{base}*****" if base and name.startswith(base) else name
    return readable
