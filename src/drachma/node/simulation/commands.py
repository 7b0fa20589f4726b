"""Commands of simulated containers: how long they take and how they end, for commands whose effect is known. Pure.

``sleep``, ``true``, ``false``, ``pause``, ``tail -f /dev/null`` and shell scripts of these with ``exit``, ``echo``,
``exec``, ``wait``, ``&&``, ``||``, ``;`` and endless loops are understood. Other commands have no known effect.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT: Final = re.compile(r"([0-9]*\.?[0-9]+)([smhd]?)")
_OPERATOR: Final = re.compile(r"\|\||&&|;|\n|&|\|")
_ENDLESS_LOOP: Final = re.compile(
    r"\b(while\s+(true|:|\[\s*1\s*\]|\[\[\s*1\s*\]\])|until\s+false|for\s*\(\(\s*;\s*;\s*\)\))"
)
_MOST_SCRIPT: Final = 10_000
"""Longest script that is read, in characters."""


class Run(NamedTuple):
    """Run of a container: its duration in seconds, its exit code, and the lines that it prints."""

    seconds: float
    code: int = 0
    output: tuple[str, ...] = ()


def read(words: Sequence[str]) -> Run | None:
    """Return the run of a command with its arguments, or None if its effect is not known."""
    if not words:
        return None
    name, *arguments = _strip_wrappers(words)
    name = name.rpartition("/")[2]
    if name in _SHELLS:
        script = _script(arguments)
        return None if script is None else _read_script(script)
    return _read_program(name, arguments)


def _strip_wrappers(words: Sequence[str]) -> list[str]:
    """Return a command without init programs in front of it."""
    words_left = list(words)
    while len(words_left) > 1 and words_left[0].rpartition("/")[2] in ("busybox", "exec", "tini", "dumb-init", "--"):
        words_left = words_left[1:]
    return words_left


def _script(arguments: Sequence[str]) -> str | None:
    """Return the script of ``sh -c SCRIPT``, or None."""
    for number, argument in enumerate(arguments):
        if not argument.startswith("-"):
            return None
        if "c" in argument.lstrip("-") and not argument.startswith("--"):
            return arguments[number + 1] if number + 1 < len(arguments) else None
    return None


def _read_program(name: str, arguments: Sequence[str]) -> Run | None:
    match name:
        case "sleep":
            return _sleep(arguments)
        case "true" | ":":
            return Run(0.0)
        case "false":
            return Run(0.0, 1)
        case "pause":
            return Run(math.inf)
        case "tail" if "/dev/null" in arguments and any(each in ("-f", "-F", "--follow") for each in arguments):
            return Run(math.inf)
        case "echo" | "printf":
            return Run(0.0, 0, (" ".join(each for each in arguments if each not in ("-n", "-e")),))
        case _:
            return None


def _sleep(arguments: Sequence[str]) -> Run | None:
    seconds = 0.0
    for argument in arguments:
        if argument in ("infinity", "inf"):
            return Run(math.inf)
        match = _AMOUNT.fullmatch(argument)
        if match is None:
            return None
        seconds += float(match[1]) * _UNITS[match[2]]
    return Run(seconds) if arguments else None


def _read_script(script: str) -> Run | None:
    if len(script) > _MOST_SCRIPT:
        return None
    loop = _ENDLESS_LOOP.search(script)
    if loop is not None:
        # Commands before the loop run first; the loop never ends, unless it breaks or exits.
        if re.search(r"\b(break|exit)\b", script[loop.start() :]):
            return None
        before = _read_lines(script[: loop.start()]) if script[: loop.start()].strip(" ;\n&") else Run(0.0)
        return None if before is None else Run(math.inf, 0, before.output)
    return _read_lines(script)


def _read_lines(script: str) -> Run | None:
    """Return the run of simple commands with operators between them, or None if one of them is not known."""
    total, status, output = 0.0, 0, list[str]()
    background = 0.0
    operators = [";", *(each for each in _OPERATOR.findall(_mask_quotes(script)))]
    for operator, next_operator, command in zip(operators, [*operators[1:], ";"], _split(script), strict=True):
        if operator == "|":
            return None
        if (operator == "&&" and status) or (operator == "||" and not status):
            continue
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            return None
        if not words:
            continue
        if words[0] in ("set", "trap", "export", "cd"):
            continue
        if words[0] == "exit":
            return _exit(words, total, status, output)
        if words[0] == "wait":
            total = max(total, background)
            continue
        run = read(words)
        if run is None:
            return None
        if next_operator == "&":
            background = max(background, total + run.seconds)
            continue
        total, status = total + run.seconds, run.code
        output += run.output
        if math.isinf(total) or words[0] == "exec":
            break
    return Run(total, status, tuple(output))


def _exit(words: Sequence[str], total: float, status: int, output: Sequence[str]) -> Run | None:
    if len(words) == 1:
        return Run(total, status, tuple(output))
    return Run(total, int(words[1]) & 255, tuple(output)) if words[1].isdecimal() else None


def _mask_quotes(script: str) -> str:
    """Return the script with quoted text replaced, so that operators inside it do not count."""
    return re.sub(r"'[^']*'|\"(?:\\.|[^\"\\])*\"", lambda match: "x" * len(match[0]), script)


def _split(script: str) -> list[str]:
    """Return the commands between operators."""
    parts, start = [], 0
    for match in _OPERATOR.finditer(_mask_quotes(script)):
        parts.append(script[start : match.start()])
        start = match.end()
    return [*parts, script[start:]]
