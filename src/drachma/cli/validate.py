"""``drachma validate``: manifests checked by the API server's own code, without a server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.offline.manifestfiles import Source, Unreadable
    from drachma.process.kueuemanifests import KueueManifests
    from drachma.server.pipeline.verdict import Judge


def validate(
    file: options.Filename,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Check manifests of any kind that drachma serves as its server would when they are created.

    Shows the server's messages and warnings. Objects without a namespace go to "default". Checks that depend on the
    rest of a cluster are left out: the existence of namespaces, priority classes and runtime classes, and the features
    of nodes. Admin access is checked only if the manifests contain the Namespace.

    Objects of Kueue are checked as by its definitions and webhooks, and so are its Configuration, a QueueingPolicy, and
    the ConfigMap kueue-controller-manager-config.
    """
    from drachma.offline import manifestfiles
    from drachma.process.kueuemanifests import KueueManifests
    from drachma.server.pipeline import verdict

    kueue = KueueManifests()
    additions = kueue.additions()
    judge = verdict.Judge(
        gates=gates.Gates.parse(feature_gates),
        clock=lambda: datetime.now(UTC),
        kinds=additions.kinds,
        functions=additions.functions,
    )
    if not asyncio.run(_check_all(judge, kueue, list(manifestfiles.read(file)))):
        raise typer.Exit(1)


async def _check_all(judge: Judge, kueue: KueueManifests, sources: list[Source | Unreadable]) -> bool:
    """Print the server's answer to every manifest. Return True if the server would accept all of them."""
    from drachma.offline import manifestfiles

    await judge.assume(source.content for source in sources if isinstance(source, manifestfiles.Source))
    is_good = True
    for source in sources:
        problem = str(source) if isinstance(source, manifestfiles.Unreadable) else await _check(judge, kueue, source)
        if problem:
            typer.echo(f"drachma: {problem}", err=True)
            is_good = False
    return is_good


async def _check(judge: Judge, kueue: KueueManifests, source: Source) -> str:
    """Print that a manifest is valid, or return the server's refusal."""
    from drachma.validation import refusal

    if kueue.is_configuration(source.content):
        problem = kueue.configuration_problem(source.content)
        if not problem:
            typer.echo(f"{source.content['kind']} of {source.content['apiVersion']} is valid")
        return f"{source.place}: {problem}" if problem else ""
    try:
        verdict = await judge.judge(source.content)
    except errors.DecodeError as error:
        return f"{source.place}: {error}"
    for warning in verdict.warnings:
        typer.echo(f"drachma: {source.place}: warning: {warning}", err=True)
    if verdict.refusal is not None:
        return f"{source.place}: {verdict.refusal['message']}"
    if problem := kueue.config_map_problem(source.content):
        return f"{source.place}: {problem}"
    title = refusal.qualified(verdict.resource.singular, verdict.resource.group)
    typer.echo(f"{title}/{verdict.name} is valid")
    return ""
