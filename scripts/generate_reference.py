"""Write the reference of commands, kinds and metrics in docs/reference from the code.

Usage: python scripts/generate_reference.py [--metrics]

Commands come from their own help, kinds from the records of the API server. ``--metrics`` also starts a cluster with
queues for a moment and lists the metrics that it serves. A test compares the pages of commands and kinds with the code.
"""

import inspect
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any

PROJECT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "docs" / "reference"
_NOTE = "<!-- Written by scripts/generate_reference.py. -->"
_WIDTH = 140


def commands() -> str:
    """Return the page of all commands with their arguments and options."""
    from drachma.cli import root

    lines = [
        "# Commands",
        "",
        _NOTE,
        "",
        "Read this page to look up an option. `drachma COMMAND --help` prints the same.",
        "",
        "| command | use |",
        "|---|---|",
    ]
    lines += [f"| [`drachma {name}`](#drachma-{name}) | {_cell(text)} |" for name, text in root.COMMANDS.items()]
    for name in root.COMMANDS:
        lines += ["", *_command(f"drachma {name}", root.load(name), depth=2)]
    return "\n".join(lines) + "\n"


def _command(title: str, command: Any, *, depth: int) -> Iterator[str]:
    yield f"{'#' * depth} {title}"
    yield ""
    yield from _paragraphs(command.help or "")
    context = command.make_context(title, [], resilient_parsing=True)
    records = [each.get_help_record(context) for each in command.params if "--help" not in each.opts]
    rows = [record for record in records if record is not None]
    if rows:
        yield ""
        yield "| option | meaning |"
        yield "|---|---|"
        for name, text in rows:
            yield f"| `{' '.join(name.split()).replace('|', chr(92) + '|')}` | {_cell(text)} |"
    for name, part in getattr(command, "commands", {}).items():
        yield ""
        yield from _command(f"{title} {name}", part, depth=depth + 1)


def _cell(text: str) -> str:
    """Return a text in one line of a table."""
    escaped = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"<([^>]*)>", r"&lt;\1&gt;", escaped)


def _paragraphs(text: str) -> Iterator[str]:
    cleaned = inspect.cleandoc(text).split("\f")[0].replace("\b\n", "")
    for number, paragraph in enumerate(cleaned.split("\n\n")):
        if number:
            yield ""
        yield from textwrap.wrap(_cell(paragraph), _WIDTH, break_long_words=False, break_on_hyphens=False)


def kinds() -> str:
    """Return the page of all kinds that the API server has."""
    from drachma.server.kinds import builtin
    from drachma.server.kinds.kueue import queuekinds

    lines = [
        "# Kinds",
        "",
        _NOTE,
        "",
        "Read this page to see whether drachma serves a kind, in which versions, and with which subresources.",
        "`kubectl explain KIND` describes its fields. Kinds of `kueue.x-k8s.io` are served with",
        "`drachma up --queueing`. Kinds behind a [feature gate](../gates.md) are listed too.",
    ]
    groups: dict[str, list[Any]] = {}
    for kind in (*builtin.KINDS, *queuekinds.kinds()):
        groups.setdefault(kind.group, []).append(kind)
    for group in sorted(groups):
        lines += [
            "",
            f"## {group or 'core'}",
            "",
            "| kind | resource | short names | scope | versions | subresources |",
        ]
        lines += ["|---|---|---|---|---|---|", *sorted(_kind(each) for each in groups[group])]
    return "\n".join(lines) + "\n"


def _kind(kind: Any) -> str:
    name = kind.kind if isinstance(kind.kind, str) else kind.kind.__name__
    scope = "namespace" if kind.namespaced else "cluster"
    parts = ", ".join(sorted({str(getattr(each, "name", each)) for each in kind.subresources}))
    return (
        f"| {name} | {kind.plural} | {', '.join(kind.short_names)} | {scope} | {', '.join(kind.versions)} | {parts} |"
    )


_PARTS = {
    "apiserver": "API server",
    "etcd": "API server",
    "scheduler": "Scheduler",
    "kueue": "Queues",
    "drachma": "drachma",
    "workqueue": "Controllers",
    "kubelet": "Node agent",
    "dra": "Node agent",
}


def metrics() -> str:
    """Return the page of the metrics of a cluster in one process, which is started for it."""
    lines = [
        "# Metrics",
        "",
        _NOTE,
        "",
        "Read this page to build a board or an alert. `drachma up` serves these at `/metrics`; components that run",
        "alone serve their part. Metrics of upstream have upstream's names and meaning. `drachma exporter` serves",
        "[metrics about devices and claims](../production.md).",
    ]
    by_part: dict[str, list[str]] = {}
    for name, kind, text in _families(_scrape()):
        part = _PARTS.get(name.partition("_")[0], "Other")
        by_part.setdefault(part, []).append(f"| `{name}` | {kind} | {_cell(text)} |")
    for part in (*dict.fromkeys(_PARTS.values()), "Other"):
        if part in by_part:
            lines += ["", f"## {part}", "", "| metric | type | meaning |", "|---|---|---|", *sorted(by_part[part])]
    return "\n".join(lines) + "\n"


def _families(text: str) -> Iterable[tuple[str, str, str]]:
    meanings = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        if not name.endswith("_created"):
            yield name, kind, meanings.get(name, "")


def _scrape() -> str:
    from drachma.client import http

    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = pathlib.Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "drachma", "up", "--memory", "--queueing", "--listen", "127.0.0.1:0"]
        process = subprocess.Popen([*command, "--kubeconfig-out", str(kubeconfig)], stdout=subprocess.DEVNULL)
        try:
            while not kubeconfig.exists():
                time.sleep(0.2)
            access = http.find_access(kubeconfig)
            trust = ssl.create_default_context(cadata=bytes(access.certificate_authority or b"").decode())
            request = urllib.request.Request(f"{access.server}/metrics")
            request.add_header("Authorization", f"Bearer {access.token}")
            for _ in range(100):
                try:
                    with urllib.request.urlopen(request, context=trust) as answer:
                        text: str = answer.read().decode()
                except urllib.error.URLError:
                    text = ""
                if "kueue_" in text and "scheduler_" in text:
                    return text
                time.sleep(0.5)
            raise SystemExit("the cluster has not served its metrics")
        finally:
            process.terminate()
            process.wait(60)


def main() -> None:
    FOLDER.joinpath("commands.md").write_text(commands(), encoding="utf-8")
    FOLDER.joinpath("kinds.md").write_text(kinds(), encoding="utf-8")
    if "--metrics" in sys.argv[1:]:
        FOLDER.joinpath("metrics.md").write_text(metrics(), encoding="utf-8")


if __name__ == "__main__":
    main()
