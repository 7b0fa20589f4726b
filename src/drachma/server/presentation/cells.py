"""How documents fill the cells of their tables, one function a kind; the columns are in ``presentation.columns``.

Every function takes a document and the time it is, and gives one value for each column of the kind.
"""

from datetime import datetime
from typing import Any, TypeAlias

from drachma.server.presentation import age, podsummary
from drachma.values import quantity

Document: TypeAlias = dict[str, Any]
Cells: TypeAlias = list[Any]


def plain(document: Document, now: datetime) -> Cells:
    return [_name(document), _age(document, now)]


def pod(pod: Document, now: datetime) -> Cells:
    summary = podsummary.summarize(pod, now=now)
    status, spec = _part(pod, "status"), _part(pod, "spec")
    addresses = status.get("podIPs") or [{}]
    wide = (addresses[0].get("ip"), spec.get("nodeName"), status.get("nominatedNodeName"))
    shown = [value or "<none>" for value in wide]
    return [_name(pod), *summary, _age(pod, now), *shown, podsummary.readiness_gates(pod)]


def node(node: Document, now: datetime) -> Cells:
    status, info = _part(node, "status"), _part(_part(node, "status"), "nodeInfo")
    ready = next((each for each in reversed(status.get("conditions") or []) if each.get("type") == "Ready"), None)
    state = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if _part(node, "spec").get("unschedulable"):
        state += ",SchedulingDisabled"
    kernel = info.get("kernelVersion") or age.UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    roles = ",".join(sorted(_roles(node))) or "<none>"
    wide = [info.get("osImage") or age.UNKNOWN, kernel, info.get("containerRuntimeVersion") or age.UNKNOWN]
    addresses = [_address(status, "InternalIP"), _address(status, "ExternalIP")]
    return [_name(node), state, roles, _age(node, now), info.get("kubeletVersion", ""), *addresses, *wide]


def namespace(namespace: Document, now: datetime) -> Cells:
    return [_name(namespace), _part(namespace, "status").get("phase", ""), _age(namespace, now)]


def event(event: Document, now: datetime) -> Cells:
    series = event.get("series")
    first = age.since(event.get("firstTimestamp") or event.get("eventTime"), now=now)
    last = age.since(event["lastTimestamp"], now=now) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    if series is not None:
        last, count = age.since(series.get("lastObservedTime"), now=now), series.get("count", 0)
    about, source = _part(event, "involvedObject"), _part(event, "source")
    target = "/".join(part for part in (about.get("kind", "").lower(), about.get("name", "")) if part)
    reporter = (
        source.get("component") or event.get("reportingComponent", ""),
        source.get("host") or event.get("reportingInstance", ""),
    )
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        target if about.get("name") else about.get("kind", "").lower(),
        about.get("fieldPath", ""),
        ", ".join(reporter) if reporter[1] else reporter[0],
        event.get("message", "").strip(),
        first,
        count,
        _name(event),
    ]


def quota(quota: Document, now: datetime) -> Cells:
    status = _part(quota, "status")
    requests: list[str] = []
    limits: list[str] = []
    for name, hard in sorted((status.get("hard") or {}).items()):
        used = (status.get("used") or {}).get(name, "0")
        column = limits if name.startswith("limits.") else requests
        column.append(f"{name}: {_canonical(used)}/{_canonical(hard)}")
    return [_name(quota), ", ".join(requests), ", ".join(limits), _age(quota, now)]


def job(job: Document, now: datetime) -> Cells:
    spec, status = _part(job, "spec"), _part(job, "status")
    succeeded, wanted = status.get("succeeded", 0), spec.get("completions")
    completions = f"{succeeded}/{1 if wanted is None else wanted}"
    if wanted is None and spec.get("parallelism", 0) > 1:
        completions += f" of {spec['parallelism']}"
    start, end = age.parse(status.get("startTime")), age.parse(status.get("completionTime"))
    duration = age.words(((end or now) - start).total_seconds()) if start else ""
    return [_name(job), _job_state(job), completions, duration, _age(job, now), *_template(job, absent="<none>")]


def _job_state(job: Document) -> str:
    true = {each.get("type") for each in _part(job, "status").get("conditions") or [] if each.get("status") == "True"}
    for condition in ("Complete", "Failed"):
        if condition in true:
            return condition
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    rest = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((condition for condition in rest if condition in true), "Running")


def deployment(deployment: Document, now: datetime) -> Cells:
    spec, status = _part(deployment, "spec"), _part(deployment, "status")
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [_name(deployment), ready, *counts, _age(deployment, now), *_template(deployment, absent="")]


def replica_set(replica_set: Document, now: datetime) -> Cells:
    spec, status = _part(replica_set, "spec"), _part(replica_set, "status")
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(replica_set), *counts, _age(replica_set, now), *_template(replica_set, absent="<none>")]


def secret(secret: Document, now: datetime) -> Cells:
    return [_name(secret), secret.get("type", ""), len(secret.get("data") or {}), _age(secret, now)]


def config_map(config_map: Document, now: datetime) -> Cells:
    entries = len(config_map.get("data") or {}) + len(config_map.get("binaryData") or {})
    return [_name(config_map), entries, _age(config_map, now)]


def lease(lease: Document, now: datetime) -> Cells:
    return [_name(lease), _part(lease, "spec").get("holderIdentity") or "", _age(lease, now)]


def priority_class(class_: Document, now: datetime) -> Cells:
    policy = class_.get("preemptionPolicy") or ""
    return [_name(class_), class_.get("value", 0), class_.get("globalDefault", False), _age(class_, now), policy]


def claim(claim: Document, now: datetime) -> Cells:
    status, is_deleted = _part(claim, "status"), bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [_name(claim), ",".join(states), _age(claim, now)]


def device_slice(slice_: Document, now: datetime) -> Cells:
    spec = _part(slice_, "spec")
    pool = _part(spec, "pool").get("name", "")
    return [_name(slice_), spec.get("nodeName") or "", spec.get("driver", ""), pool, _age(slice_, now)]


def taint_rule(rule: Document, now: datetime) -> Cells:
    taint = _part(_part(rule, "spec"), "taint")
    added = age.since(taint["timeAdded"], now=now) if taint.get("timeAdded") else ""
    parts = [taint.get(name, "") for name in ("key", "value", "effect")]
    return [_name(rule), *parts, added, _age(rule, now)]


def _name(document: Document) -> str:
    return str(_part(document, "metadata").get("name", ""))


def _age(document: Document, now: datetime) -> str:
    return age.since(_part(document, "metadata").get("creationTimestamp"), now=now)


def _part(document: Document, name: str) -> Document:
    return document.get(name) or {}


def _canonical(amount: Any) -> str:
    return str(quantity.Quantity.parse(str(amount)))


def _roles(node: Document) -> set[str]:
    labels = (_part(node, "metadata").get("labels") or {}).items()
    prefix = "node-role.kubernetes.io/"
    named = {key.removeprefix(prefix) for key, _ in labels if key.startswith(prefix)}
    return {role for role in (*named, *(value for key, value in labels if key == "kubernetes.io/role")) if role}


def _address(status: Document, kind: str) -> str:
    found = (each.get("address", "") for each in status.get("addresses") or [] if each.get("type") == kind)
    return next(found, "<none>")


def _template(document: Document, *, absent: str) -> list[str]:
    spec = _part(document, "spec")
    containers = _part(_part(spec, "template"), "spec").get("containers") or []
    lists = [",".join(each.get(name, "") for each in containers) for name in ("name", "image")]
    return [*lists, _selector(spec.get("selector")) or absent]


def _selector(selector: Document | None) -> str:
    parts = [(key, f"{key}={value}") for key, value in _part(selector or {}, "matchLabels").items()]
    for each in (selector or {}).get("matchExpressions") or []:
        key, values = each.get("key", ""), ",".join(sorted(each.get("values") or []))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append((key, forms.get(each.get("operator", ""), f"!{key}")))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))
