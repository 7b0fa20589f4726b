"""Allocations of the claims in files of a cluster, one after the other, each on the first node where it fits.

Called by ``drachma allocate``. A claim that fits counts for later claims. An error of the allocator ends the attempt at
a claim at once, as in a scheduler. Invalid pools only rule out their node.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from drachma import allocator, errors
from drachma.allocator import explanation, placement, selectors
from drachma.allocator.explanation import survey
from drachma.api import deviceclass, gates, resourceclaim
from drachma.offline import claimfiles
from drachma.validation import authorization, context

_MOST_GROUPS: Final = 5
_MOST_NAMES: Final = 8
_SHARES: Final = uuid.UUID("6d1a2a57-3c4f-4b0e-9f54-6a3d6a0c7f1e")


class Explained(NamedTuple):
    """Explanation as a document and as text."""

    document: dict[str, Any]
    text: str


class ClaimAllocation(NamedTuple):
    """Result for one claim."""

    message: str
    document: dict[str, Any] | None = None
    """Claim with its allocation, if it fits."""
    explanations: tuple[Explained, ...] = ()


class ClaimAllocator:
    """Allocates the claims of a cluster."""

    def __init__(
        self, files: claimfiles.ClaimFiles, enabled: gates.Gates, *, node: str | None, next_to: Sequence[str] = ()
    ) -> None:
        """Try only ``node`` if it is given. Raises DecodeError if it is not in the cluster.

        ``next_to`` are allocated claims: only nodes on which they can be used are tried.
        """
        self._files = files
        self._gates = enabled
        self._nodes = _nodes_for_claims(_nodes(files, node), files, next_to)
        features = allocator.Features.of(enabled)
        self._state = allocator.AllocatedState(
            (claim.defaulted for claim in files.claims.values()), consumable_capacity=features.consumable_capacity
        )
        self._claim = ""
        self._shares = 0
        self._allocator = allocator.Allocator(
            files.catalog(enabled),
            classes=allocator.Classes(files.of(deviceclass.DeviceClass)),
            allocated=self._state,
            compiler=selectors.SelectorCompiler(features),
            features=features,
            share_ids=self._share_id,
        )

    def allocate(self, name: str, *, explain: bool) -> ClaimAllocation:
        """Try the claim on one node after the other."""
        return self.allocate_together((name,), explain=explain)[0]

    def allocate_together(self, names: Sequence[str], *, explain: bool) -> list[ClaimAllocation]:
        """Try the claims of a pod on one node after the other. If they do not fit together, return one answer."""
        claims = [self._files.claims[name] for name in names]
        defaulted_claims = [claim.defaulted for claim in claims]
        self._claim = names[0]
        subject = f"claim {names[0]}" if len(names) == 1 else f"claims {', '.join(names)} together"
        refusal = "; ".join(filter(None, map(self._refusal, defaulted_claims)))
        if refusal:
            return [ClaimAllocation(f"{subject}: {refusal}")]
        problems: list[str] = []
        for node in self._nodes:
            try:
                outcome = self._allocator.allocate(node, defaulted_claims)
            except errors.InvalidPoolError as error:
                problems.append(f"{_on(node)}: {error}")
                continue
            except errors.AllocationError as error:
                explained = self._explanations(defaulted_claims, [node]) if explain else ()
                return [ClaimAllocation(f"{subject}: {error}", explanations=explained)]
            match outcome:
                case allocator.Allocated(results):
                    fitting = list(zip(claims, results, strict=True))
                    for claim, result in fitting:
                        self._state.put_allocation(claim.defaulted.metadata, result)
                    return [
                        ClaimAllocation(f"claim {claim.name}: fits {_on(node)}", claim.allocated(result))
                        for claim, result in fitting
                    ]
                case allocator.GaveUp(reason):
                    problems.append(f"{_on(node)}: gave up: {reason}")
                case allocator.DoesNotFit():
                    pass
        where = _on(self._nodes[0]) if len(self._nodes) == 1 else f"on any of {len(self._nodes)} nodes"
        reasons = f"; {_join_names(problems)}" if problems else ""
        verb = "does" if len(names) == 1 else "do"
        if explain:
            explained = self._explanations(defaulted_claims, self._nodes)
            return [ClaimAllocation(f"{subject}: {verb} not fit {where}{reasons}", explanations=explained)]
        return [ClaimAllocation(f"{subject}: {verb} not fit {where}{reasons} (--explain says why)")]

    def _refusal(self, claim: resourceclaim.ResourceClaim) -> str:
        """Return the error of an API server that knows the claim's namespace; empty if there is none."""
        request = context.Context(
            now=datetime.now(UTC),
            gates=self._gates,
            api_version="resource.k8s.io/v1",
            namespace_labels=self._files.namespace_labels(claim.metadata.namespace),
        )
        return "; ".join(map(str, authorization.check_admin_access(claim.spec.devices, request)))

    def _explanations(
        self, claims: list[resourceclaim.ResourceClaim], nodes: list[allocator.Node]
    ) -> tuple[Explained, ...]:
        explainer = explanation.Explainer(self._allocator)
        surveyed = survey.survey(explainer, nodes, claims=claims, most=_MOST_GROUPS)
        explained: list[Explained] = []
        for group in surveyed.groups:
            document = {"kind": "Explanation", **explanation.to_document(group.explanation)}
            text = explanation.render(group.explanation)
            if group.others:
                document["alsoOn"] = list(group.others)
                text += f"  the same on {len(group.others)} more nodes: {_join_names(group.others)}\n"
            explained.append(Explained(document, text))
        if surveyed.unexplained:
            remark = f"{len(surveyed.unexplained)} more nodes, for other reasons: {_join_names(surveyed.unexplained)}\n"
            last = explained[-1]
            explained[-1] = last._replace(text=last.text + remark)
        return tuple(explained)

    def _share_id(self) -> str:
        # Equal claims get equal IDs every time, and different claims different ones.
        self._shares += 1
        return str(uuid.uuid5(_SHARES, f"{self._claim}/{self._shares}"))


def _nodes(files: claimfiles.ClaimFiles, name: str | None) -> list[allocator.Node]:
    nodes = files.nodes()
    if name is None:
        # Without any name, devices for all nodes can still be allocated.
        return list(nodes.values()) or [allocator.Node("")]
    if name in nodes:
        return [nodes[name]]
    if not nodes:
        return [allocator.Node(name)]
    raise errors.DecodeError(f"--node {name}: there is no such node, but {_join_names(nodes)}")


def _nodes_for_claims(
    nodes: list[allocator.Node], files: claimfiles.ClaimFiles, next_to: Sequence[str]
) -> list[allocator.Node]:
    """Return the nodes on which the devices of these claims can be used. Raises DecodeError if there are none."""
    for name in next_to:
        allocation = files.claims[name].defaulted.status.allocation
        if allocation is not None and allocation.node_selector is not None:
            usable = placement.Placement(None, all_nodes=None, selector=allocation.node_selector)
            nodes = [each for each in nodes if usable.covers(each)]
            if not nodes:
                raise errors.DecodeError(f"claim {name}: its devices cannot be used on any node that is left to try")
    return nodes


def _on(node: allocator.Node) -> str:
    return f"on node {node.name}" if node.name else "on nodes of any name"


def _join_names(names: Any) -> str:
    listed = list(names)
    more = len(listed) - _MOST_NAMES
    return ", ".join(listed[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
