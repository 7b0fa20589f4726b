"""``drachma migrate``: manifests or live objects of v1alpha2 and v1alpha3 as manifests of v1, with a report."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Annotated, Any

import typer

from drachma.api import codec, manifest, scheme
from drachma.cli import options
from drachma.client import http
from drachma.offline import manifestfiles, migrationcheck, migrationdocuments
from drachma.runtime import clock


def migrate(
    file: Annotated[
        list[str] | None, typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")
    ] = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    output: Annotated[
        options.Format, typer.Option("-o", "--output", help="The format to write.")
    ] = options.Format.YAML,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write the report only.")] = False,
    check: Annotated[
        bool, typer.Option(help="Allocate every claim, and judge what it gets by its old selectors.")
    ] = True,
) -> None:
    """Migrate resource.k8s.io/v1alpha2 and v1alpha3 to v1.

    Reads manifests, or without any the objects of v1alpha2 in a cluster. Classes, claims, templates and slices are
    written in v1, with their parameters folded in; pods lose ``source``; everything else is written as it is. What v1
    cannot express is reported on standard error, and so is what each claim would get, or that this takes too long to
    find out. Exit code 1: a claim would get something else than before, or something cannot be read.
    """
    if file:
        documents = [source.content for source in manifestfiles.read_all(file)]
    else:
        documents = asyncio.run(_live(kubeconfig, context))
    done = migrationdocuments.migrate(documents, with_check=check)
    if not dry_run:
        write = manifest.write_yaml if output is options.Format.YAML else manifest.write_json
        typer.echo(write(done.documents), nl=False)
    for note in done.notes:
        typer.echo(f"drachma: not expressed: {note}", err=True)
    for finding in done.findings:
        typer.echo(f"drachma: {finding.judgement}: {finding}", err=True)
    if any(finding.judgement is migrationcheck.Judgement.WRONG for finding in done.findings):
        raise typer.Exit(1)


async def _live(kubeconfig: pathlib.Path | None, context: str) -> list[Any]:
    """The objects of v1alpha2 in a cluster."""
    reached = http.find_access(kubeconfig, context=context)
    async with http.HttpClient(reached, time=clock.SystemClock(), manager="drachma-migrate") as client:
        listings = [await client.list(kind.model) for kind in scheme.KINDS if kind.versions == ("v1alpha2",)]
    return [codec.encode(each) for listing in listings for each in listing.items]
