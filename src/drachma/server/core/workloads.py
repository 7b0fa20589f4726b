"""Jobs, deployments and replica sets: their defaults, the labels that tie pods to a job, and what may change."""

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.server import documents, objectmeta
from drachma.server.core import podspec
from drachma.server.core.document import Document, DocumentStrategy
from drachma.server.strategy import Subject, Traits, Write
from drachma.validation import fielderror, metadata, printed
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC
from drachma.validation.podspec import spec as spec_rules
from drachma.values import labels

_JOB_RESTARTS: Final = ("OnFailure", "Never")
_CONTROLLER_UID: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAME: Final = ("batch.kubernetes.io/job-name", "job-name")


class WorkloadStrategy(DocumentStrategy):
    """What runs pods from a template."""

    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = documents.copy(content.get("spec", {}))
        template = spec.setdefault("template", {})
        podspec.default(template.setdefault("spec", {}))
        self.default_workload(spec, metadata)

    def default_workload(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        """The defaults of the workload itself, in place."""

    def check(self, content: Document, subject: Subject) -> Errors:
        spec = content["spec"]
        for field in ("replicas", "minReadySeconds", "parallelism", "completions", "backoffLimit"):
            if (spec.get(field) or 0) < 0:
                yield fielderror.invalid(SPEC.child(field), spec[field], metadata.MUST_NOT_BE_NEGATIVE)
        yield from self.check_selector(spec)
        yield from spec_rules.check(spec["template"]["spec"], SPEC.child("template", "spec"), is_pod=False)

    def check_selector(self, spec: Document) -> Errors:
        """The selector must be there and choose the pods of the template."""
        at, selector = SPEC.child("selector"), spec.get("selector")
        if not selector:
            yield fielderror.required(at)
            return
        try:
            chosen = _selector(selector)
        except errors.InvalidValueError as error:
            yield fielderror.invalid(at, printed.wire(selector), str(error))
            return
        own = (spec["template"].get("metadata") or {}).get("labels") or {}
        if not chosen.matches(own):
            detail = "`selector` does not match template `labels`"
            yield fielderror.invalid(SPEC.child("template", "metadata", "labels"), printed.wire(own), detail)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if not documents.same(content["spec"].get("selector"), old["spec"].get("selector")):
            shown = printed.wire(content["spec"].get("selector"))
            yield fielderror.invalid(SPEC.child("selector"), shown, metadata.IMMUTABLE)


class ReplicaSetStrategy(WorkloadStrategy):
    def default_workload(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        spec.setdefault("replicas", 1)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"replicas": 0}


class DeploymentStrategy(WorkloadStrategy):
    def default_workload(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        for field, value in (("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)):
            spec.setdefault(field, value)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}


class JobStrategy(WorkloadStrategy):
    traits = Traits(is_completed=True)

    def default_workload(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
        spec.setdefault("manualSelector", False)
        own = (spec["template"].get("metadata") or {}).get("labels")
        if own and not metadata.get("labels"):
            metadata["labels"] = dict(own)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        spec = content["spec"] = documents.copy(content["spec"])
        if spec.get("manualSelector"):
            return
        # Pods must belong to this job and no other of the same name, so its uid is among their labels.
        template = spec["template"].setdefault("metadata", {})
        own = template.setdefault("labels", {})
        own.update(dict.fromkeys(_JOB_NAME, metadata.get("name", "")))
        own.update(dict.fromkeys(_CONTROLLER_UID, metadata["uid"]))
        selector = spec.setdefault("selector", {})
        selector.setdefault("matchLabels", {})[_CONTROLLER_UID[0]] = metadata["uid"]

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from super().check(content, subject)
        policy = content["spec"]["template"]["spec"].get("restartPolicy")
        if policy not in _JOB_RESTARTS:
            at = SPEC.child("template", "spec", "restartPolicy")
            if policy == "Always":
                yield fielderror.required(at, 'valid values: "OnFailure", "Never"')
            else:
                yield fielderror.not_supported(at, printed.named(policy), _JOB_RESTARTS)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from super().check_update(content, old, subject)
        spec, before = content["spec"], old["spec"]
        is_on_hold = bool(before.get("suspend")) and not (old.get("status") or {}).get("startTime")
        fixed = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
        if not is_on_hold:
            fixed.append("template")
        if spec.get("completionMode") != "Indexed":
            fixed.append("completions")
        for field in fixed:
            if not documents.same(spec.get(field), before.get(field)):
                yield fielderror.invalid(SPEC.child(field), printed.wire(spec.get(field)), metadata.IMMUTABLE)


def _selector(selector: Mapping[str, Any]) -> labels.Selector:
    expressions = [
        (each.get("key", ""), each.get("operator", ""), each.get("values") or [])
        for each in selector.get("matchExpressions") or ()
    ]
    return labels.Selector.from_parts(selector.get("matchLabels") or {}, expressions)
