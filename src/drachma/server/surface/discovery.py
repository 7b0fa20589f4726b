"""Discovery documents of groups, versions and resources, in the legacy and the aggregated form.

Pure functions of the catalogue; ``server.wire`` serves them below ``/api`` and ``/apis`` and chooses by Accept header.

Public: ``api_versions``, ``group_list``, ``group``, ``resource_list`` (legacy); ``aggregated_core``, ``aggregated``
(``apidiscovery.k8s.io/v2``).
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.server.surface import resources

Document: TypeAlias = dict[str, Any]

_ORDER: Final = (
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "admissionregistration.k8s.io",
    # By default upstream does not serve Workload of scheduling.k8s.io, so Kueue's workloads come first.
    "kueue.x-k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
"""Order of groups: if several have a resource of a name, clients take the first."""


class AggregatedVersion(NamedTuple):
    """Version of a group that an extension API server serves, with the entries of its APIResourceList."""

    group: str
    version: str
    resources: Sequence[Mapping[str, Any]]
    is_current: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


def api_versions(*, server_address: str) -> Document:
    """Return ``/api``: the versions of the core group, and the server's address."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    }


def group_list(catalog: resources.Catalog, extensions: Iterable[AggregatedVersion] = ()) -> Document:
    """Return ``/apis``: all groups but the core group."""
    groups = {each.name: _group(each) for each in _groups_in_order(catalog)}
    for name, versions in _group_versions(extensions).items():
        groups[name] = _with_extensions(groups.get(name), name, versions)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups.values())}


def group(catalog: resources.Catalog, name: str, extensions: Iterable[AggregatedVersion] = ()) -> Document | None:
    """Return ``/apis/{group}``, or None if there is no such group."""
    api_group = catalog.group(name)
    content = _group(api_group) if api_group and name else None
    versions = _group_versions(extensions).get(name)
    if versions:
        content = _with_extensions(content, name, versions)
    return None if content is None else {"kind": "APIGroup", "apiVersion": "v1", **content}


def _group_versions(extensions: Iterable[AggregatedVersion]) -> dict[str, list[AggregatedVersion]]:
    by_group: dict[str, list[AggregatedVersion]] = {}
    for each in extensions:
        by_group.setdefault(each.group, []).append(each)
    return by_group


def _with_extensions(own: Document | None, name: str, extensions: Iterable[AggregatedVersion]) -> Document:
    """Return a group of legacy discovery with the versions of extension API servers after its own."""
    more = [{"groupVersion": each.api_version, "version": each.version} for each in extensions]
    if own is None:
        return {"name": name, "versions": more, "preferredVersion": more[0]}
    return {**own, "versions": [*own["versions"], *(each for each in more if each not in own["versions"])]}


def resource_list(catalog: resources.Catalog, group_name: str, *, version: str) -> Document | None:
    """Return ``/api/v1`` or ``/apis/{group}/{version}``; None if there is no such version."""
    members = catalog.resources_in(group_name, version)
    if not members:
        return None
    listed = [entry for each in members for entry in (_resource(each), *_subresources(each))]
    # Upstream omits the apiVersion of the core group's list.
    envelope = {"kind": "APIResourceList", "apiVersion": "v1"} if group_name else {"kind": "APIResourceList"}
    return {**envelope, "groupVersion": members[0].api_version(version), "resources": listed}


def aggregated_core(catalog: resources.Catalog) -> Document:
    """Return ``/api`` in the aggregated form; the core group has no name there."""
    core = catalog.group("")
    return _aggregated(catalog, [core] if core else [])


def aggregated(catalog: resources.Catalog, extensions: Iterable[AggregatedVersion] = ()) -> Document:
    """Return ``/apis`` in the aggregated form."""
    content = _aggregated(catalog, _groups_in_order(catalog))
    items: dict[str, Document] = {each["metadata"]["name"]: each for each in content["items"]}
    for name, versions in _group_versions(extensions).items():
        item = items.setdefault(name, {"metadata": {"name": name}, "versions": []})
        served = {each["version"] for each in item["versions"]}
        item["versions"] += [_extension_version(each) for each in versions if each.version not in served]
    content["items"] = list(items.values())
    return content


def _extension_version(extension: AggregatedVersion) -> Document:
    """Return the aggregated form of what an extension API server lists in the legacy form."""
    entries = {str(each.get("name")): _extension_resource(each) for each in extension.resources}
    for name, entry in list(entries.items()):
        parent, _, below = name.partition("/")
        if below:
            del entries[name]
        if below and parent in entries:
            kind, verbs = entry["responseKind"], entry["verbs"]
            subresource = {"subresource": below, "responseKind": kind, "verbs": verbs}
            entries[parent].setdefault("subresources", []).append(subresource)
    freshness = "Current" if extension.is_current else "Stale"
    return {"version": extension.version, "resources": list(entries.values()), "freshness": freshness}


def _extension_resource(entry: Mapping[str, Any]) -> Document:
    kind = {"group": entry.get("group", ""), "version": entry.get("version", ""), "kind": entry.get("kind", "")}
    names = {key: entry[key] for key in ("shortNames", "categories") if entry.get(key)}
    return {
        "resource": entry.get("name", ""),
        "responseKind": kind,
        "scope": "Namespaced" if entry.get("namespaced") else "Cluster",
        "singularResource": entry.get("singularName", ""),
        "verbs": list(entry.get("verbs") or ()),
        **names,
    }


def _groups_in_order(catalog: resources.Catalog) -> list[resources.Group]:
    def place(each: resources.Group) -> tuple[int, str]:
        return _ORDER.index(each.name) if each.name in _ORDER else len(_ORDER), each.name

    return sorted((each for each in catalog.groups if each.name), key=place)


def _group(group: resources.Group) -> Document:
    versions = [
        {"groupVersion": api_version, "version": name}
        for api_version, name in zip(group.api_versions, group.versions, strict=True)
    ]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _resource(each: resources.Resource) -> Document:
    entry: Document = {
        "name": each.plural,
        "singularName": each.singular,
        "namespaced": each.namespaced,
        "kind": each.kind,
        "verbs": list(each.verbs),
    }
    entry |= _names(each)
    return (
        entry
        if each.traits.is_question or each.traits.is_measured
        else {**entry, "storageVersionHash": _storage_hash(each)}
    )


def _subresources(each: resources.Resource) -> Iterable[Document]:
    for below in each.subresources:
        entry: Document = {"name": f"{each.plural}/{below.name}", "singularName": "", "namespaced": each.namespaced}
        group_name, _, group_version = below.api_version.rpartition("/")
        if group_name:
            entry.update(group=group_name, version=group_version)
        yield {**entry, "kind": below.kind or each.kind, "verbs": list(below.verbs)}


def _names(each: resources.Resource) -> Document:
    names = {"shortNames": list(each.short_names), "categories": list(each.categories)}
    return {key: value for key, value in names.items() if value}


def _storage_hash(each: resources.Resource) -> str:
    """Return upstream's hash of group, version and kind; it changes if the storage version changes."""
    text = f"{each.group}/{each.storage_version}/{each.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _aggregated(catalog: resources.Catalog, groups: Iterable[resources.Group]) -> Document:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_aggregated_group(catalog, each) for each in groups],
    }


def _aggregated_group(catalog: resources.Catalog, group: resources.Group) -> Document:
    versions = [
        {
            "version": name,
            "resources": [_aggregated_resource(each) for each in catalog.resources_in(group.name, name)],
            "freshness": "Current",
        }
        for name in group.versions
    ]
    return {"metadata": {"name": group.name} if group.name else {}, "versions": versions}


def _aggregated_resource(each: resources.Resource) -> Document:
    entry: Document = {
        "resource": each.plural,
        "responseKind": _kind("", each.kind),
        "scope": "Namespaced" if each.namespaced else "Cluster",
        "singularResource": each.singular,
        "verbs": list(each.verbs),
        **_names(each),
    }
    if each.subresources:
        entry["subresources"] = [
            {
                "subresource": below.name,
                "responseKind": _kind(below.api_version, below.kind or each.kind),
                "verbs": list(below.verbs),
            }
            for below in each.subresources
        ]
    return entry


def _kind(api_version: str, kind: str) -> Document:
    """Return a responseKind as upstream writes it."""
    group_name, _, group_version = api_version.rpartition("/")
    return {"group": group_name, "version": group_version if group_name else "", "kind": kind}
