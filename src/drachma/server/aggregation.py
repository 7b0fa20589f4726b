"""Aggregation: APIServices whose groups an extension API server serves behind this one.

Requests for such a group go to a pod of the APIService's service, with the name of their user in headers. Every
APIService is checked when it, its service or their endpoints change, and every half minute; its condition says whether
the server answers. Its resources are part of discovery.
"""

import asyncio
import base64
import binascii
import logging
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma.api import meta
from drachma.server import mediatypes, serviceendpoints, status
from drachma.server.calls.call import Body, Call, Target
from drachma.server.kinds import apiregistration
from drachma.server.pipeline.answer import Authority, NodeEndpoint
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import verbs
from drachma.server.surface.discovery import AggregatedVersion
from drachma.server.user import User
from drachma.store import record
from drachma.values import quotation

_log = logging.getLogger(__name__)

_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_CHECKER: Final = User(name="system:kube-aggregator", groups=("system:masters",))
_AGENT: Final = "kube-apiserver"
_PAUSE_SECONDS: Final = 30.0
_GATHER_SECONDS: Final = 0.2
_NAME_CHARACTERS: Final = "!#$&'*+^`|"
_WATCHED: Final = (apiregistration.KEY, "services", "discovery.k8s.io/endpointslices")

Fetch = Callable[[NodeEndpoint], Awaitable[tuple[int, bytes]]]
"""Returns the status code and body of an answer."""


class _Problem(NamedTuple):
    """Reason and message of an APIService that is not available."""

    reason: str
    message: str


class Aggregation:
    """APIServices of a dispatcher: their locations, checks and discovery."""

    def __init__(self, dispatcher: Dispatcher, fetch: Fetch) -> None:
        self._dispatcher: Final = dispatcher
        self._store: Final = dispatcher.services.store
        self._fetch: Final = fetch
        self._changed: Final = asyncio.Event()
        self._checking: asyncio.Task[None] | None = None
        self._revision = -1
        self._has_remote = False
        self._resources: Final[dict[str, Sequence[Mapping[str, Any]]]] = {}
        for key in _WATCHED:
            assert key not in dispatcher.after, "each resource has one function after its writes"
            dispatcher.after[key] = self.wake

    async def wake(self) -> None:
        """Have all APIServices checked in the background, if there are any."""
        self._changed.set()
        if self._checking is None and self._is_used():
            self._checking = asyncio.create_task(self._check_repeatedly(), name="checks of APIServices")

    async def close(self) -> None:
        """End the checks."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.wait([self._checking])

    def find(self, path: str) -> record.Record | None:
        """Return the APIService that a path belongs to, if an extension API server serves its group and version."""
        if not self._is_used():
            return None
        match path.split("/", 4):
            case ["", "apis", group, version, *_] if group and version:
                service = self._store.get(record.Key(apiregistration.KEY, "", f"{version}.{group}"))
                return service if service is not None and _is_remote(service.value) else None
        return None

    def locate(self, service: record.Record, path: str, query: str, user: User) -> NodeEndpoint | None:
        """Return the location of a path of an available APIService; None if it is not available."""
        if apiregistration.condition(service.value).get("status") != "True":
            return None
        location = self._location(service.value["spec"], path, query, user)
        return None if isinstance(location, _Problem) else location

    def versions(self) -> list[AggregatedVersion]:
        """Return the versions that extension API servers serve, those that clients prefer first."""
        if not self._is_used():
            return []
        services = sorted(self._remote(), key=lambda each: _order(each.value["spec"]))
        return [
            AggregatedVersion(
                group=each.value["spec"]["group"],
                version=each.value["spec"]["version"],
                resources=self._resources.get(each.key.name, ()),
                is_current=apiregistration.condition(each.value).get("status") == "True",
            )
            for each in services
        ]

    def _is_used(self) -> bool:
        """Return True if there are APIServices of extension API servers; almost free, as every request asks."""
        revision = self._store.changed(apiregistration.KEY)
        if revision != self._revision:
            self._revision, self._has_remote = revision, bool(self._remote())
        return self._has_remote

    def _remote(self) -> list[record.Record]:
        return [each for each in self._store.list(apiregistration.KEY).records if _is_remote(each.value)]

    # Checks

    async def _check_repeatedly(self) -> None:
        try:
            while self._remote():
                self._changed.clear()
                for each in self._remote():
                    await self._check(each)
                try:
                    async with asyncio.timeout(_PAUSE_SECONDS):
                        await self._changed.wait()
                except TimeoutError:
                    continue
                await asyncio.sleep(_GATHER_SECONDS)
        finally:
            self._checking = None

    async def _check(self, service: record.Record) -> None:
        problem = await self._find_problem(service)
        condition = {
            "type": apiregistration.AVAILABLE,
            "status": "True" if problem is None else "False",
            "reason": "Passed" if problem is None else problem.reason,
            "message": "all checks passed" if problem is None else problem.message,
        }
        current = apiregistration.condition(service.value)
        if {name: current.get(name) for name in condition} != condition:
            now = meta.time_text(self._dispatcher.services.clock())
            since = current.get("lastTransitionTime") if current.get("status") == condition["status"] else now
            await self._write(service, {**condition, "lastTransitionTime": since})

    async def _find_problem(self, service: record.Record) -> _Problem | None:
        spec = service.value["spec"]
        path = f"/apis/{spec['group']}/{spec['version']}"
        location = self._location(spec, path, "", _CHECKER)
        if isinstance(location, _Problem):
            return location
        url = f"https://{location.host}:{location.port}{path}"
        try:
            code, body = await self._fetch(location)
            if not 200 <= code < 300:
                raise ValueError(f"bad status from {url}: {code}")
            document = msgspec.json.decode(body)
            entries = document.get("resources") if isinstance(document, dict) else None
            self._resources[service.key.name] = [each for each in entries or () if isinstance(each, dict)]
        except status.StatusError as error:
            return _failed(url, str(error))
        except (OSError, EOFError, ValueError, msgspec.DecodeError) as error:
            return _failed(url, str(error) or type(error).__name__)
        return None

    def _location(self, spec: Mapping[str, Any], path: str, query: str, user: User) -> NodeEndpoint | _Problem:
        reference = spec["service"]
        name, namespace, port = reference["name"], reference["namespace"], reference.get("port") or 443
        title = f"service/{name} in {quotation.quote(namespace)}"
        service = self._store.get(record.Key(serviceendpoints.SERVICES, namespace, name))
        if service is None:
            return _Problem("ServiceNotFound", f"{title} is not present")
        ports = {each.get("port"): each.get("name", "") for each in service.value["spec"].get("ports") or ()}
        if port not in ports:
            return _Problem("ServicePortError", f"{title} is not listening on port {port}")
        if not any(serviceendpoints.slices(namespace, name, store=self._store)):
            return _Problem("EndpointsNotFound", f"cannot find endpointslices for {title}")
        endpoint = serviceendpoints.find(service, port, self._store)
        if endpoint is None:
            port_name = quotation.quote(ports[port])
            return _Problem(
                "MissingEndpoints", f"endpointslices for {title} have no addresses with port name {port_name}"
            )
        if isinstance(endpoint, serviceendpoints.Simulated):
            return _failed(f"https://{endpoint.address}{path}", "its pods are simulated, so it is not dialled")
        bundle = _decode(spec.get("caBundle") or "")
        return NodeEndpoint(
            node=endpoint.node,
            host=endpoint.address,
            port=endpoint.port,
            path=path,
            query=query,
            authority=Authority(
                server_name=f"{name}.{namespace}.svc",
                bundle=bundle,
                is_insecure=bool(spec.get("insecureSkipTLSVerify")),
            ),
            headers=_user_headers(user),
        )

    async def _write(self, service: record.Record, condition: Mapping[str, Any]) -> None:
        surface = self._dispatcher.surface
        resource = surface.find("apiregistration.k8s.io", "v1", plural="apiservices")
        if resource is None:
            # The operator has switched the group off.
            return
        document = {**service.value, "status": {"conditions": [condition]}}
        call = Call(
            user=_SERVER,
            verb=verbs.UPDATE,
            surface=surface,
            target=Target(resource, "v1", "", service.key.name, resource.subresource("status")),
            body=Body(msgspec.json.encode(document), mediatypes.JSON),
            user_agent=_AGENT,
        )
        try:
            await self._dispatcher.dispatch(call)
        except status.StatusError as error:
            # A concurrent change or deletion has triggered another pass.
            if error.reason not in ("NotFound", "Conflict"):
                _log.warning("APIService %s: its condition cannot be written: %s", service.key.name, error)


def _is_remote(service: Mapping[str, Any]) -> bool:
    return service["spec"].get("service") is not None


def _order(spec: Mapping[str, Any]) -> tuple[int, str, int, str]:
    return -spec["groupPriorityMinimum"], spec["group"], -spec["versionPriority"], spec["version"]


def _failed(url: str, problem: str) -> _Problem:
    return _Problem("FailedDiscoveryCheck", f"failing or missing response from {url}: {problem}")


def _decode(bundle: str) -> str:
    try:
        return base64.b64decode(bundle).decode()
    except (binascii.Error, UnicodeDecodeError):
        # Dialling reports certificates that cannot be read.
        return bundle


def _user_headers(user: User) -> tuple[tuple[str, str], ...]:
    """Return the headers in which an extension API server finds the user, as upstream's aggregator sends them."""
    return (
        ("x-remote-user", user.name),
        *((("x-remote-uid", user.uid),) if user.uid else ()),
        *(("x-remote-group", group) for group in user.groups),
        *((f"x-remote-extra-{_header_name(key)}", value) for key, values in user.extra.items() for value in values),
    )


def _header_name(key: str) -> str:
    """Return a key as part of a header's name: characters that names of headers lack are percent-encoded."""
    return urllib.parse.quote(key.lower(), safe=_NAME_CHARACTERS)
