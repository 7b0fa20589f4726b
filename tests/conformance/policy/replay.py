"""Replays scenarios step by step against a server, many at once: each has namespaces, users and names of its own."""

import asyncio
import collections
import contextlib
import json
import pathlib
import re
import ssl
import time
import urllib.parse
from collections.abc import Iterable
from typing import Any, NamedTuple

import aiohttp
import yarl

from tests.conformance import exclusions
from tests.conformance.policy import answers
from tests.conformance.policy.identities import Identities, Person
from tests.conformance.policy.webhooks import Webhooks
from tests.conformance.vectors import Line

TOGETHER = 16
"""Scenarios at once: most of their time they wait."""

PATIENCE_SECONDS = 180.0
"""The longest wait for something to happen."""

_ANSWER_SECONDS = 40.0
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_UNQUOTED = "/?&=%,:!+~()$*;@"
_NOT_KEPT = ("", "Status", "TokenRequest", "Binding", "Eviction")
_FORCED = {
    "apiVersion": "v1",
    "kind": "DeleteOptions",
    "gracePeriodSeconds": 0,
    "propagationPolicy": "Background",
}


class Reply(NamedTuple):
    """What came back; the body of a watch is the list of its events."""

    code: int
    body: Any
    warnings: list[str]


class Caller:
    """Talks to one server as anybody."""

    def __init__(self, url: str, identities: Identities, *, files: pathlib.Path) -> None:
        self._url = url
        self._identities = identities
        self._files = files
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        self.tokens = {
            f"token_{re.sub(r'[^A-Za-z0-9_]', '_', name)}": person.token
            for name, person in identities.people.items()
            if person.token
        }

    async def __aenter__(self) -> "Caller":
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions.values():
            await session.close()

    async def call(self, step: Line, *, events: int = 0) -> Reply:
        """The answer to the request of a step; where that is a stream, with at least so many events."""
        name = step.get("as", "admin")
        person = self._identities.people[name] if name is not None else Person()
        body = (self._files / step["bodyFile"]).read_text() if step.get("bodyFile") else step.get("body")
        data = None if body is None else body if isinstance(body, str) else json.dumps(body)
        url = yarl.URL(self._url + urllib.parse.quote(step["path"], safe=_UNQUOTED), encoded=True)
        stream = step.get("stream")
        session = self._session(name if person.certificate else "", person)
        async with session.request(
            step["method"],
            url,
            data=data.encode() if data is not None else None,
            headers=list(_headers(step, person, has_body=data is not None)),
            timeout=aiohttp.ClientTimeout(total=None if stream else _ANSWER_SECONDS, sock_read=_ANSWER_SECONDS),
        ) as response:
            warnings = response.headers.getall("Warning", [])
            if stream and response.status == 200:
                first = await _events(response, events, seconds=_ANSWER_SECONDS)
                more = await _events(response, stream["events"] - len(first), seconds=stream.get("seconds", 5))
                return Reply(response.status, [*first, *more], warnings)
            text = (await response.read()).decode(errors="replace")
        try:
            return Reply(response.status, json.loads(text), warnings)
        except ValueError:
            return Reply(response.status, text[:2000], warnings)

    async def wait(self, step: Line, recorded: Line) -> tuple[Reply, bool]:
        """The answer once what a step waits for holds, and whether it does.

        Where the recording has come to it, a slow machine may take longer to.
        """
        wish = step.get("wait")
        seconds = (wish or {}).get("seconds", PATIENCE_SECONDS) if "timedOut" in recorded else PATIENCE_SECONDS
        end = time.monotonic() + seconds
        while True:
            reply = await self.call(step, events=_event_count(recorded))
            if not wish or _holds(reply, wish):
                return reply, True
            if time.monotonic() > end:
                return reply, False
            await asyncio.sleep(0.1)

    def _session(self, name: str, person: Person) -> aiohttp.ClientSession:
        """Connections of those who show the same certificate, or none."""
        if name not in self._sessions:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            if person.certificate is not None:
                context.load_cert_chain(person.certificate, person.key)
            connector = aiohttp.TCPConnector(ssl=context, limit=0)
            self._sessions[name] = aiohttp.ClientSession(connector=connector, skip_auto_headers=["User-Agent"])
        return self._sessions[name]


async def replay(caller: Caller, scenarios: Iterable[Line], webhooks: Webhooks) -> dict[str, str | None]:
    """The first difference of each scenario, by its name; None where there is none."""
    outcomes: dict[str, str | None] = {}
    places = asyncio.Semaphore(TOGETHER)
    turn = asyncio.Lock()

    async def one(scenario: Line) -> None:
        # Scenarios of roles have users in common, whose bindings in one would show in the reasons of another.
        async with turn if scenario["area"] == "rbac" else contextlib.nullcontext(), places:
            outcomes[scenario["name"]] = await Replay(caller, scenario, webhooks).run()

    everything = list(scenarios)
    async with webhooks.serving():
        # Webhooks have two seconds to answer: they are asked when nobody else keeps the machine busy.
        for has_webhooks in (False, True):
            together = [each for each in everything if bool(each.get("webhooks")) is has_webhooks]
            await asyncio.gather(*(one(scenario) for scenario in together if not scenario.get("alone")))
        for scenario in everything:
            if scenario.get("alone"):
                await one(scenario)
    return outcomes


class Replay:
    """One scenario."""

    def __init__(self, caller: Caller, scenario: Line, webhooks: Webhooks) -> None:
        self._caller = caller
        self._scenario = scenario
        self._webhooks = webhooks
        self._made: list[str] = []
        self._variables: dict[str, Any] = {
            **caller.tokens,
            "webhook": f"{webhooks.url}/{scenario['name']}",
            "caBundle": webhooks.bundle,
        }

    async def run(self) -> str | None:
        """The first difference; what the scenario made is deleted in the end."""
        position = 0
        try:
            for position, raw in enumerate(self._scenario["steps"], 1):
                race = exclusions.RACES.get(self._scenario["name"])
                if race is not None and race["before"] == position:
                    await self._caller.wait(race, {})
                step = _filled(raw, self._variables)
                recorded = self._scenario["answers"][position - 1]
                answer = await self._answer(raw, step, recorded)
                found = answers.difference(recorded, answer)
                if found is not None:
                    who, what = step.get("as", "admin"), f"{step.get('method')} {step.get('path')}"
                    return f"step {position}, {who} {what}: {found}"
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            return f"step {position}: {type(error).__name__}: {error}"
        finally:
            await self._clean()
        return None

    async def _answer(self, raw: Line, step: Line, recorded: Line) -> dict[str, Any]:
        await asyncio.sleep(step.get("sleep", 0))
        if "received" in step:
            return {"body": answers.normal(self._webhooks.received[f"/{self._scenario['name']}/{step['received']}"])}
        if "method" not in step:
            return {}
        if "repeat" in step:
            several = (_filled(raw, {**self._variables, "i": number}) for number in range(step["repeat"]))
            codes = collections.Counter(
                [reply.code for reply in await asyncio.gather(*map(self._caller.call, several))]
            )
            return {"codes": {str(code): count for code, count in sorted(codes.items())}}
        reply, has_held = await self._caller.wait(step, recorded)
        for name, pointer in step.get("save", {}).items():
            self._variables[name] = _saved(reply.body, pointer)
        self._remember(step, reply)
        return {} if step.get("skip") else self._told(step, reply, has_held=has_held)

    def _told(self, step: Line, reply: Reply, *, has_held: bool) -> dict[str, Any]:
        """What the recording has of an answer."""
        answer: dict[str, Any] = {"code": reply.code}
        if not step.get("codeOnly"):
            content = answers.normal(reply.body, keeps_owners=bool(self._scenario.get("managedFields")))
            if "pick" in step:
                content = {each: answers.dig(content, each) for each in step["pick"] if answers.has(content, each)}
            for pointer in step.get("drop", []):
                answers.remove(content, pointer)
            for pointer in step.get("sort", []):
                if answers.has(content, pointer):
                    answers.dig(content, pointer).sort(key=lambda each: json.dumps(each, sort_keys=True))
            answer["body"] = content
        if reply.warnings:
            answer["warnings"] = reply.warnings
        if not has_held:
            answer["timedOut"] = True
        return answer

    def _remember(self, step: Line, reply: Reply) -> None:
        kind = reply.body.get("kind", "") if isinstance(reply.body, dict) else ""
        if reply.code != 201 or "dryRun=" in step["path"] or kind in _NOT_KEPT or kind.endswith("Review"):
            return
        path, name = step["path"].partition("?")[0], reply.body.get("metadata", {}).get("name")
        if name:
            self._made.append(f"{path}/{name}" if step["method"] == "POST" else path)

    async def _clean(self) -> None:
        """Deletes what was made, the newest first, whatever finalizers it has."""
        free = {"method": "PATCH", "contentType": "application/merge-patch+json"}
        for path in dict.fromkeys(reversed(self._made)):
            with contextlib.suppress(OSError, aiohttp.ClientError, TimeoutError):
                reply = await self._caller.call({"method": "DELETE", "path": path, "body": _FORCED})
                if reply.code in (200, 202) and answers.has(reply.body, "/metadata/finalizers"):
                    await self._caller.call({**free, "path": path, "body": {"metadata": {"finalizers": None}}})


def _headers(step: Line, person: Person, *, has_body: bool) -> Iterable[tuple[str, str]]:
    yield "Accept", step.get("accept", "application/json")
    if has_body:
        yield "Content-Type", step.get("contentType", "application/json")
    token = step.get("token", person.token)
    if token:
        yield "Authorization", f"Bearer {token}"
    other = step.get("impersonate", {})
    for name in ("user", "uid"):
        if name in other:
            yield f"Impersonate-{name.title()}", other[name]
    for group in other.get("groups", []):
        yield "Impersonate-Group", group
    for key, values in other.get("extra", {}).items():
        for value in values:
            yield f"Impersonate-Extra-{urllib.parse.quote(key, safe='')}", value


def _event_count(recorded: Line) -> int:
    """How many events an answer has that was recorded of a stream, as far as that can be told; else none."""
    body = recorded.get("body")
    if isinstance(body, dict):
        numbers = [pointer.split("/")[1] for pointer in body if pointer.startswith("/")]
        return max((int(number) + 1 for number in numbers if number.isdigit()), default=0)
    return len(body) if isinstance(body, list) else 0


async def _events(response: aiohttp.ClientResponse, count: int, *, seconds: float) -> list[Any]:
    """The next events, so many of them if they come in time."""
    events: list[Any] = []
    with contextlib.suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(seconds):
            while len(events) < count:
                line = await response.content.readline()
                if not line:
                    break
                events.append(json.loads(line))
    return events


def _holds(reply: Reply, wish: Line) -> bool:
    if wish.get("code", reply.code) != reply.code:
        return False
    pointer = wish.get("pointer")
    if pointer is None:
        return True
    is_there = answers.has(reply.body, pointer)
    if wish.get("absent") or not is_there:
        return bool(wish.get("absent")) and not is_there
    value = answers.dig(reply.body, pointer)
    return ("value" not in wish or value == wish["value"]) and (
        "contains" not in wish or answers.includes(value, wish["contains"])
    )


def _saved(body: Any, pointer: str) -> Any:
    if pointer.startswith("="):
        return pointer[1:]
    return answers.dig(body, pointer) if answers.has(body, pointer) else "MISSING"


def _filled(value: Any, variables: dict[str, Any]) -> Any:
    """A step with its variables; a text that is nothing but one keeps the variable's type."""
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole and whole[1] in variables:
            return variables[whole[1]]
        return _VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), value)
    if isinstance(value, dict):
        return {_filled(key, variables): _filled(item, variables) for key, item in value.items()}
    return [_filled(item, variables) for item in value] if isinstance(value, list) else value
