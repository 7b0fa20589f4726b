"""``drachma doctor``: mistakes in how a cluster uses devices and claims, and their repair."""

from __future__ import annotations

import asyncio
import enum
from typing import TYPE_CHECKING, Annotated

import typer

from drachma.cli import options

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from drachma.client import access
    from drachma.doctor import Finding


class Form(enum.StrEnum):
    """Form of the answer."""

    TEXT = "text"
    JSON = "json"


class Level(enum.StrEnum):
    """Severity, the worst first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


def doctor(
    file: options.ClusterFiles = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Annotated[Form, typer.Option("-o", "--output", help="Form of the answer.")] = Form.TEXT,
    level: Annotated[Level, typer.Option(help="Show findings of this severity and worse.")] = Level.INFO,
    fix: Annotated[bool, typer.Option("--fix", help="Offer the safe repairs one by one, and carry them out.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --fix, do not ask.")] = False,
) -> None:
    """Find mistakes in how a cluster uses devices and claims, and repair them.

    Examines manifests or a dump with -f, otherwise the cluster of a kubeconfig. Exits with 1 if a finding is an error
    or worse and was not repaired.
    """
    import datetime as dt

    from drachma import errors
    from drachma.doctor import Cluster, Severity, examine

    if fix and file:
        raise errors.InvalidValueError("--fix: goes with a running cluster, not with -f")
    if yes and not fix:
        raise errors.InvalidValueError("--yes: goes with --fix")
    now = dt.datetime.now(dt.UTC)
    if file:
        from drachma.cli import clusters

        state = clusters.read(file, kubeconfig, context=context).state
        findings = examine(Cluster.of(state.objects, now=now))
    else:
        from drachma.client import http

        server = http.find_access(kubeconfig, context=context)
        findings = asyncio.run(_visit(server, now))
    findings = [each for each in findings if each.severity.rank <= Severity(level).rank]
    typer.echo(_json(findings) if output is Form.JSON else _text(findings))
    repaired = asyncio.run(_fix(server, findings, is_sure=yes)) if fix else []
    bad = [each for each in findings if each.severity.rank <= Severity.ERROR.rank and each not in repaired]
    if bad:
        raise typer.Exit(1)


async def _visit(server: access.Access, now: dt.datetime) -> list[Finding]:
    from drachma import errors
    from drachma.api import resourceclaim
    from drachma.client import http
    from drachma.doctor import examine, visit
    from drachma.runtime import clock

    async with http.HttpClient(server, clock=clock.SystemClock(), manager="drachma-doctor") as client:
        try:
            api_version = await client.served_version(resourceclaim.ResourceClaim)
        except errors.ObjectNotFoundError:
            api_version = ""
        server_version = await client.server_version()
        return examine(await visit.read(client, now=now, server_version=server_version, api_version=api_version))


async def _fix(server: access.Access, findings: Sequence[Finding], *, is_sure: bool) -> list[Finding]:
    """Carry out repairs that the user confirms; return the findings that are repaired."""
    from drachma import errors
    from drachma.client import http
    from drachma.doctor import visit
    from drachma.runtime import clock

    repaired = []
    async with http.HttpClient(server, clock=clock.SystemClock(), manager="drachma-doctor") as client:
        for each in findings:
            if each.repair is None:
                continue
            if not is_sure and not typer.confirm(f"{each.subject}: {each.repair.command}", err=True):
                continue
            try:
                await visit.carry_out(client, each.repair)
            except errors.RequestError as error:
                typer.echo(f"{each.subject}: not repaired: {error}", err=True)
                continue
            typer.echo(f"{each.subject}: repaired", err=True)
            repaired.append(each)
    return repaired


def _json(findings: Sequence[Finding]) -> str:
    import msgspec

    documents = [
        {
            "check": each.check,
            "severity": each.severity.value,
            "subject": each.subject,
            "message": each.message,
            "evidence": list(each.evidence),
            "advice": each.advice,
            "repair": each.repair.command if each.repair is not None else "",
        }
        for each in findings
    ]
    return msgspec.json.format(msgspec.json.encode({"findings": documents}), indent=2).decode()


def _text(findings: Sequence[Finding]) -> str:
    if not findings:
        return "No problems."
    lines = []
    for each in findings:
        lines.append(f"{each.severity.value.upper()} {each.subject}: {each.message} [{each.check}]")
        lines += [f"    {line}" for line in each.evidence]
        if each.repair is not None:
            lines.append(f"    repair: {each.repair.command}")
        elif each.advice:
            lines.append(f"    advice: {each.advice}")
    return "\n".join(lines)
