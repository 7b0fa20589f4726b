"""Claims that the pods of a PodGroup share (KEP-5729).

A template that a group and its pods name in equal entries generates one claim for the group. The claim is charged once
for the group, for any number of its pods, pod sets and workloads (kueue#14235). A pod set shares claims in two cases:
its pods name a group (``spec.schedulingGroup``), or the group will be made for its job (KEP-5547), which an annotation
of the workload says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from drachma.api import pod, podgroup
from drachma.queueing.devices.selectors import Problem
from drachma.queueing.kinds import workload
from drachma.validation import fielderror
from drachma.validation.path import SPEC

ANNOTATION: Final = "queueing.drachma.dev/group-claims"
"""Annotation of workloads whose job gets a group of its own: names of claims by pod set, as JSON."""

Groups = Mapping[tuple[str, str], podgroup.PodGroup]
"""Groups by namespace and name."""


class GroupClaim(NamedTuple):
    """Claim that is generated for a group."""

    key: str
    """Owner and entry, divided by a slash, so that the key is not the name of a claim."""
    uid: str
    """Uid of the group, or of the job that the group is made for."""


class ClaimUse(NamedTuple):
    """Entry of the claims of a pod set."""

    pod_set: str
    entry: str


def annotation(names: Mapping[str, tuple[str, ...]]) -> str:
    """Return the value of the annotation for names of claims by pod set."""
    return msgspec.json.encode(names, order="sorted").decode()


def find(wl: workload.Workload, groups: Groups | None) -> dict[ClaimUse, GroupClaim]:
    """Return the claims that pod sets share in groups; none if ``groups`` is None, because sharing is off.

    Raises Problem if a group does not exist, because it is not known then which claims it shares.
    """
    if groups is None:
        return {}
    group_claims: dict[ClaimUse, GroupClaim] = {}
    for index, pod_set in enumerate(wl.spec.pod_sets):
        name = _group_name(pod_set)
        is_missing = name is not None and (wl.metadata.namespace, name) not in groups
        if is_missing and any(each.resource_claim_template_name for each in pod_set.template.spec.resource_claims):
            at = SPEC.child("podSets").item(index).child("template", "spec", "schedulingGroup", "podGroupName")
            detail = f'failed to get PodGroup {name}: podgroups.scheduling.k8s.io "{name}" not found'
            raise Problem([fielderror.internal(at, detail)])
        for entry, claim in pod_set_claims(wl, pod_set, groups).items():
            group_claims[ClaimUse(pod_set.name, entry)] = claim
    return group_claims


def pod_set_claims(wl: workload.Workload, pod_set: workload.PodSet, groups: Groups | None) -> dict[str, GroupClaim]:
    """Return the claims that a pod set shares in a group that exists, or in the group of its job, by entry."""
    entries = [each for each in pod_set.template.spec.resource_claims if each.resource_claim_template_name is not None]
    if groups is None or not entries:
        return {}
    name = _group_name(pod_set)
    if name is not None:
        group = groups.get((wl.metadata.namespace, name))
        group_entries = group.spec.resource_claims if group is not None else ()
        uid = group.metadata.uid if group is not None else ""
        return {each.name: GroupClaim(f"{name}/{each.name}", uid) for each in entries if each in group_entries}
    names = _claims_of_job(wl).get(pod_set.name, ())
    uid = wl.metadata.labels.get(workload.JOB_UID_LABEL, wl.metadata.uid)
    return {each.name: GroupClaim(f"{uid}/{each.name}", uid) for each in entries if each.name in names}


def _group_name(pod_set: workload.PodSet) -> str | None:
    """Return the name of the group that the pods of a set name, or None."""
    group = pod_set.template.spec.scheduling_group
    return (group.pod_group_name or None) if group is not None else None


def remove_shared_templates(wl: workload.Workload, group_claims: Mapping[ClaimUse, GroupClaim]) -> workload.Workload:
    """Return a workload whose shared claims have no template, so that they are not counted for each pod."""
    if not group_claims:
        return wl
    pod_sets = tuple(
        structs.replace(each, template=structs.replace(each.template, spec=_own_claims(each, group_claims)))
        for each in wl.spec.pod_sets
    )
    return structs.replace(wl, spec=structs.replace(wl.spec, pod_sets=pod_sets))


def _own_claims(pod_set: workload.PodSet, group_claims: Mapping[ClaimUse, GroupClaim]) -> pod.PodSpec:
    spec = pod_set.template.spec
    entries = tuple(
        structs.replace(each, resource_claim_template_name=None)
        if ClaimUse(pod_set.name, each.name) in group_claims
        else each
        for each in spec.resource_claims
    )
    return structs.replace(spec, resource_claims=entries)


def _claims_of_job(wl: workload.Workload) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the claims that the group of the workload's job will share, by pod set."""
    text = wl.metadata.annotations.get(ANNOTATION)
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, tuple[str, ...]])
    except msgspec.MsgspecError:
        return {}
