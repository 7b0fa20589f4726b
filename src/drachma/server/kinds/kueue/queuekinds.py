"""The records of Kueue's kinds: what the server would make of Kueue's own definitions, without them.

They are served where an application is told to. Clients see no difference: they are looked at, pruned, defaulted and
checked as custom resources are, and presented and patched like them. Where Kueue's definitions are installed beside,
those are stored and say what they like; these kinds go on.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.server.kinds.apiextensions import customresource
from drachma.server.kinds.apiextensions.definition import Definition
from drachma.server.kinds.kueue import (
    fieldtexts,
    modelschema,
    queueschemas,
    schemanotation,
    versionforms,
    workloadschemas,
)
from drachma.server.surface import resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Environment

GROUP: Final = "kueue.x-k8s.io"
_OLDER: Final = "v1beta1"
_NEWER: Final = "v1beta2"
_WARNING: Final = "This version is deprecated. Use v1beta2 instead."

_Column = Mapping[str, Any]


class QueueStrategy(customresource.CustomStrategy):
    """A custom resource that no definition stands for."""

    def __init__(self, resource: resources.Resource, environment: Environment, *, definition: Definition) -> None:
        super().__init__(
            resource, environment, definition=definition, conversions=versionforms.VersionForms(resource.kind)
        )

    def is_terminating(self) -> bool:
        return False


def kinds() -> tuple[Kind, ...]:
    """All kinds of the group that are served."""
    known = {"PodTemplate": modelschema.pod_template(), "LabelSelector": modelschema.label_selector()}
    newer = (queueschemas.SHARED, queueschemas.V1BETA2, workloadschemas.V1BETA2)
    older = (*newer, queueschemas.V1BETA1, workloadschemas.V1BETA1)
    meanings = fieldtexts.texts()
    schemas = {
        _OLDER: schemanotation.Schemas(*older, known=known, meanings=meanings),
        _NEWER: schemanotation.Schemas(*newer, known=known, meanings=meanings),
    }
    return tuple(_kind(each, schemas) for each in _KINDS)


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    """The names of a kind, and what tables show of its objects; ``older`` where v1beta1 has it under another path."""

    kind: str
    plural: str
    short_names: Sequence[str]
    namespaced: bool = False
    has_status: bool = True
    columns: Sequence[_Column] = ()
    older_paths: Mapping[str, str] = {}
    selectable: Sequence[str] = ()

    def version(self, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        is_newer = name == _NEWER
        columns = [
            each if is_newer else {**each, "jsonPath": self.older_paths.get(each["jsonPath"], each["jsonPath"])}
            for each in self.columns
        ]
        return {
            "name": name,
            "served": True,
            "storage": is_newer,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}} if self.has_status else {},
            "additionalPrinterColumns": columns,
            "selectableFields": [{"jsonPath": path} for path in self.selectable] if is_newer else [],
            **({} if is_newer else {"deprecated": True, "deprecationWarning": _WARNING}),
        }


def _kind(named: _Named, schemas: Mapping[str, schemanotation.Schemas]) -> Kind:
    spec = {
        "group": GROUP,
        "scope": "Namespaced" if named.namespaced else "Cluster",
        "names": {
            "kind": named.kind,
            "listKind": f"{named.kind}List",
            "plural": named.plural,
            "singular": named.kind.lower(),
            "shortNames": list(named.short_names),
        },
        "versions": [named.version(name, each.kind(named.kind)) for name, each in schemas.items()],
    }
    definition = Definition({"metadata": {"name": f"{named.plural}.{GROUP}"}, "spec": spec}, revision=0)
    made = customresource.kind(definition)
    return msgspec.structs.replace(made, strategy=functools.partial(QueueStrategy, definition=definition))


def _column(name: str, path: str, kind: str = "string", *, priority: int = 0) -> _Column:
    return {"name": name, "jsonPath": path, "type": kind, **({"priority": priority} if priority else {})}


_PENDING: Final = _column("Pending Workloads", ".status.pendingWorkloads", "integer")
_KINDS: Final = (
    _Named(kind="AdmissionCheck", plural="admissionchecks", short_names=("ac",)),
    _Named(
        kind="ClusterQueue",
        plural="clusterqueues",
        short_names=("cq",),
        columns=(
            _column("Cohort", ".spec.cohortName"),
            _column("Strategy", ".spec.queueingStrategy", priority=1),
            _PENDING,
            _column("Admitted Workloads", ".status.admittedWorkloads", "integer", priority=1),
        ),
        older_paths={".spec.cohortName": ".spec.cohort"},
    ),
    _Named(kind="Cohort", plural="cohorts", short_names=("co",)),
    _Named(
        kind="LocalQueue",
        plural="localqueues",
        short_names=("queue", "queues", "lq"),
        namespaced=True,
        columns=(
            _column("ClusterQueue", ".spec.clusterQueue"),
            _PENDING,
            _column("Admitted Workloads", ".status.admittedWorkloads", "integer"),
        ),
    ),
    _Named(kind="ResourceFlavor", plural="resourceflavors", short_names=("flavor", "flavors", "rf"), has_status=False),
    _Named(
        kind="Workload",
        plural="workloads",
        short_names=("kwl", "kueueworkload", "kueueworkloads"),
        namespaced=True,
        columns=(
            _column("Queue", ".spec.queueName"),
            _column("Reserved in", ".status.admission.clusterQueue"),
            _column("Admitted", ".status.conditions[?(@.type=='Admitted')].status"),
            _column("Finished", ".status.conditions[?(@.type=='Finished')].status"),
            _column("Age", ".metadata.creationTimestamp", "date"),
        ),
        selectable=(".status.admission.clusterQueue",),
    ),
    _Named(
        kind="WorkloadPriorityClass",
        plural="workloadpriorityclasses",
        short_names=("wpc",),
        has_status=False,
        columns=(_column("Value", ".value", "integer"),),
    ),
)
