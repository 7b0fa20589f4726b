"""``drachma allocate``: the devices and nodes that claims would get, offline, or the reasons why they do not fit."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options, root

if TYPE_CHECKING:
    from drachma.offline.claimallocation import ClaimAllocation
    from drachma.offline.claimfiles import ClaimFiles


def allocate(
    file: options.Filenames = None,
    node: Annotated[
        str | None, typer.Option(help="Try this node only; by default all nodes, in the order of their names.")
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(help="Try this claim (NAMESPACE/NAME) only; by default all claims without an allocation."),
    ] = None,
    pod: Annotated[str, typer.Option(help="Try the claims of this pod (NAMESPACE/NAME) only, together.")] = "",
    explain: Annotated[bool, typer.Option("--explain", help="Explain why claims do not fit.")] = False,
    output: Annotated[
        options.Format | None,
        typer.Option("-o", "--output", help="Format; by default claims are YAML and explanations are text."),
    ] = None,
    feature_gates: options.FeatureGates = "",
    batch: Annotated[bool, typer.Option("--batch", help="Answer cases from standard input, a JSON line each.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="With --batch: measure the time, and add allocUs.")] = False,
) -> None:
    """Find devices for claims as kube-scheduler would, from manifests or from a dump of a cluster.

    Reads Nodes, ResourceSlices, DeviceClasses, ResourceClaims and their templates, DeviceTaintRules, Namespaces, pods
    and workloads, and ignores other kinds. Claims with an allocation count as allocated. The others are allocated one
    after the other, and each allocation counts for the next. Pods, Deployments, Jobs and other workloads that were
    never created get claims from their templates; the claims of a pod are allocated together. Claims that fit are
    written with their allocation.

    Exit code 0: everything fits. 1: something does not. 2: the input is bad.
    """
    from drachma.offline import allocatorcase, claimallocation

    if batch:
        from drachma.cli import batch as batches

        if file or node or claim or pod or explain or output or feature_gates:
            raise errors.DecodeError("--batch: goes with --timing only; its lines hold everything else")
        batches.write(allocatorcase.answers(sys.stdin.buffer, timing=timing))
        return
    if timing:
        raise errors.DecodeError("--timing: goes with --batch only")
    if not file:
        raise errors.DecodeError("-f: required, unless there is --batch")
    if pod and claim:
        raise errors.DecodeError("--pod: goes without --claim: all claims of the pod are tried")
    files = _read(file)
    groups, allocated = _pod_claims(files, pod) if pod else (_groups(files, _claim_names(files, claim or [])), ())
    allocator = claimallocation.ClaimAllocator(files, gates.Gates.parse(feature_gates), node=node, next_to=allocated)
    allocations = [allocation for names in groups for allocation in allocator.allocate_together(names, explain=explain)]
    _write(allocations, output)
    for allocation in allocations:
        typer.echo(f"drachma: {allocation.message}", err=True)
    if not all(allocation.document for allocation in allocations):
        raise typer.Exit(1)


def _read(paths: list[str]) -> ClaimFiles:
    from drachma.offline import claimfiles

    files = claimfiles.ClaimFiles.read(paths)
    for warning in files.warnings:
        typer.echo(f"drachma: warning: {warning}", err=True)
    for problem in files.problems:
        typer.echo(f"drachma: {problem}", err=True)
    if files.problems:
        raise typer.Exit(root.BAD_INPUT)
    return files


def _pod_claims(files: ClaimFiles, pod: str) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the claims of a pod to allocate together, and its claims that are allocated."""
    name = pod if "/" in pod else f"default/{pod}"
    if name not in files.claims_of:
        examples = ", ".join(sorted(files.claims_of)[:8]) or "none at all"
        raise errors.DecodeError(f"--pod {name}: there is no such pod, but {examples}")
    claims = files.claims_of[name]
    for each in claims:
        if each not in files.claims:
            raise errors.DecodeError(f"--pod {name}: its claim {each} is not there")
    pending_claims = tuple(each for each in claims if files.claims[each].defaulted.status.allocation is None)
    if not pending_claims:
        typer.echo(f"drachma: nothing to do: pod {name} has no claim without an allocation", err=True)
    return ([pending_claims] if pending_claims else []), tuple(each for each in claims if each not in pending_claims)


def _groups(files: ClaimFiles, names: list[str]) -> list[tuple[str, ...]]:
    """Return groups of claims to allocate together: those that a pod gets from templates, and other claims alone."""
    of_pods = {name: claims for claims in files.pods.values() for name in claims}
    groups = (tuple(each for each in of_pods.get(name, (name,)) if each in names) for name in names)
    return list(dict.fromkeys(groups))


def _claim_names(files: ClaimFiles, names: list[str]) -> list[str]:
    """Return the claims to allocate. Raises errors.DecodeError for an unknown or an allocated claim."""
    if not names:
        unallocated = [name for name, claim in files.claims.items() if claim.defaulted.status.allocation is None]
        if not unallocated:
            typer.echo(f"drachma: nothing to do: {len(files.claims)} claims, none without an allocation", err=True)
        return unallocated
    qualified = [name if "/" in name else f"default/{name}" for name in names]
    for name in qualified:
        if name not in files.claims:
            examples = ", ".join(sorted(files.claims)[:8]) or "none at all"
            raise errors.DecodeError(f"--claim {name}: there is no such claim, but {examples}")
        allocation = files.claims[name].defaulted.status.allocation
        if allocation is not None:
            devices = ", ".join(f"{entry.driver}/{entry.pool}/{entry.device}" for entry in allocation.devices.results)
            raise errors.DecodeError(f"--claim {name}: is allocated already: {devices or 'without devices'}")
    return list(dict.fromkeys(qualified))


def _write(allocations: list[ClaimAllocation], output: options.Format | None) -> None:
    from drachma.api import manifest

    documents: list[Any] = [entry.document for entry in allocations if entry.document]
    explanations = [explanation for entry in allocations for explanation in entry.explanations]
    if output is not None:
        documents += [explanation.document for explanation in explanations]
    write = manifest.write_json if output is options.Format.JSON else manifest.write_yaml
    if documents:
        typer.echo(write(documents), nl=False)
    if output is None:
        for explanation in explanations:
            typer.echo(explanation.text, nl=False)
