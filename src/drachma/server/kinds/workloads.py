"""Jobs, deployments and replica sets: their defaults, the labels that tie pods to a job, and what may change."""

from collections.abc import Iterable, Mapping
from typing import Any

from drachma.server import documents, objectmeta
from drachma.server.kinds import podspec
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.kinds.strategy import Subject, Traits, Write
from drachma.server.schema import emptyfields
from drachma.validation import job, workload
from drachma.validation.fielderror import Errors
from drachma.validation.podspec import warnings
from drachma.values import names


class WorkloadStrategy(DocumentStrategy):
    """What runs pods from a template."""

    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = documents.copy(content.get("spec", {}))
        template = spec.setdefault("template", {})
        podspec.default(template.setdefault("spec", {}))
        self.default_workload(spec, metadata)
        emptyfields.fill({"spec": spec}, self._schema)

    def default_workload(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        """The defaults of the workload itself, in place."""

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from workload.check_selector_update(content["spec"], old["spec"])

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        template = content["spec"]["template"]
        annotations = (template.get("metadata") or {}).get("annotations") or {}
        at, notes = workload.TEMPLATE.child("spec"), workload.TEMPLATE.child("metadata", "annotations")
        yield from warnings.find(template["spec"], at, annotations=annotations, notes=notes)


class ReplicaSetStrategy(WorkloadStrategy):
    def default_workload(self, spec: Document, metadata: objectmeta.Metadata) -> None:
        spec.setdefault("replicas", 1)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {"replicas": 0}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from workload.check_replica_set(content["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from workload.check_replica_set_status(content.get("status") or {})


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

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from workload.check_deployment(content["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from workload.check_deployment_status(content.get("status") or {}, old.get("status") or {})


class JobStrategy(WorkloadStrategy):
    """Jobs leave their pods behind by default, as they did before there was a garbage collector."""

    traits = Traits(is_completed=True, orphans_dependents=True)

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
            metadata["labels"] = own

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        given = (content["spec"]["template"].get("metadata") or {}).get("labels")
        spec = content["spec"] = documents.copy(content["spec"])
        if spec.get("manualSelector"):
            return
        # Pods must belong to this job and no other of the same name, so its uid is among their labels.
        template = spec["template"].setdefault("metadata", {})
        own = template.setdefault("labels", {})
        for key in job.JOB_NAME:
            own.setdefault(key, metadata.get("name", ""))
        for key in job.CONTROLLER_UID:
            own.setdefault(key, metadata["uid"])
        selector = spec.setdefault("selector", {})
        selector.setdefault("matchLabels", {}).setdefault(job.CONTROLLER_UID[1], metadata["uid"])
        if not metadata.get("labels") or metadata["labels"] is given:
            # A job without labels has those of its pods, also the ones that tie them to it.
            metadata["labels"] = dict(own)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from ()

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from job.check(content, subject.metadata)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from job.check_spec(content["spec"])
        yield from job.check_update(content, old)
        yield from job.check_name(content["spec"], subject.metadata)

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from job.check_status(content, old)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        problems = names.dns1123_label(subject.metadata.get("name", ""))
        if problems:
            yield (
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(problems)}]"
            )
        yield from super().warnings(content, subject)
