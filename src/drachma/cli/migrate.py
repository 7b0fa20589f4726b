"""``drachma migrate``: manifests or live objects of v1alpha2 and v1alpha3 as manifests of v1, with a report."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Annotated, Any

import typer

from drachma.cli import options


def migrate(
    file: options.Filenames = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: options.DocumentFormat = options.Format.YAML,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write the report only.")] = False,
    check: Annotated[
        bool, typer.Option(help="Allocate every claim, and check its devices against its old selectors.")
    ] = True,
) -> None:
    """Migrate resource.k8s.io/v1alpha2 and v1alpha3 to v1.

    Reads manifests, or without -f the objects of v1alpha2 in a cluster. Classes, claims, templates and slices are
    written in v1, with their parameters folded in; pods lose ``source``; everything else is written unchanged.

    The report on standard error lists what v1 cannot express, and the devices that each claim would get, unless
    finding out takes too long. Exit code 1: a claim would get other devices than before, or an input cannot be read.
    """
    from drachma.api import manifest
    from drachma.offline import manifestfiles, migrationcheck, migrationdocuments

    if file:
        documents = [source.content for source in manifestfiles.read_all(file)]
    else:
        documents = asyncio.run(_read_live(kubeconfig, context))
    migrated = migrationdocuments.migrate(documents)
    findings = list(migrationcheck.check(migrated.migration, migrated.slices)) if check else []
    if not dry_run:
        write = manifest.write_yaml if output is options.Format.YAML else manifest.write_json
        typer.echo(write(migrated.documents), nl=False)
    for note in migrated.migration.notes:
        typer.echo(f"drachma: not expressed: {note}", err=True)
    for finding in findings:
        typer.echo(f"drachma: {finding.judgement}: {finding}", err=True)
    if any(finding.judgement is migrationcheck.Judgement.WRONG for finding in findings):
        raise typer.Exit(1)


async def _read_live(kubeconfig: pathlib.Path | None, context: str) -> list[Any]:
    """Return the documents of v1alpha2 in a cluster."""
    from drachma.api import codec, scheme
    from drachma.client import http
    from drachma.runtime import clock

    access = http.find_access(kubeconfig, context=context)
    async with http.HttpClient(access, clock=clock.SystemClock(), manager="drachma-migrate") as client:
        listings = [await client.list(kind.model) for kind in scheme.KINDS if kind.versions == ("v1alpha2",)]
    return [codec.encode(each) for listing in listings for each in listing.items]
