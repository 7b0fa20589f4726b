"""Responses for non-resource paths: discovery, OpenAPI, version, health, metrics."""

import platform
from collections.abc import Sequence
from typing import Any, Final

from drachma.api import kubernetesversion
from drachma.server import mediatypes, status
from drachma.server.access import accounttokens, openid
from drachma.server.presentation import negotiation
from drachma.server.surface import apisurface, discovery, openapi, routes
from drachma.server.wire import health, responses
from drachma.server.wire.requests import Request

KUBERNETES_VERSION: Final = ("1", str(kubernetesversion.MINOR))
"""Version of the Kubernetes API that this server implements."""

_AGGREGATED: Final = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_SWAGGER_PROTOBUF: Final = tuple(f"com.github.proto-openapi.spec.v2{mark}v1.0+protobuf" for mark in ".@")
"""Media types of OpenAPI v2 in protobuf; the second is an older name, and no valid media type."""

_PATHS: Final = (
    openid.CONFIGURATION_PATH,
    "/api",
    "/api/v1",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    openid.KEYS_PATH,
    "/readyz",
    "/version",
)


class NonResource:
    """Serves all readable paths that are not resources."""

    def __init__(self, checks: health.Health, tokens: accounttokens.AccountTokens | None = None) -> None:
        """``tokens`` issues the server's own tokens, if it issues any."""
        self._health = checks
        self._tokens = tokens

    def serve(
        self,
        request: Request,
        surface: apisurface.ApiSurface,
        extensions: Sequence[discovery.AggregatedVersion] = (),
    ) -> responses.Response:
        """Return the response, for any method; only group versions refuse methods other than GET.

        ``extensions`` are the versions that extension API servers serve.

        Raises:
            routes.NotServedError: the path is not served.
            status.StatusError: the path is below a served group, or the method is refused.
        """
        path = request.path.rstrip("/") or "/"
        if path.startswith("//"):
            raise routes.NotServedError(path)
        checked = self._health.serve(request.path, request.query)
        if checked is not None:
            return checked
        tokens = self._tokens
        if tokens is not None and path in (openid.CONFIGURATION_PATH, openid.KEYS_PATH) and openid.is_served(tokens):
            return _openid(path, request, tokens)
        if path.startswith("/openapi/"):
            return _openapi(path, request, surface)
        if path in ("/api", "/apis") and _wants_aggregated(request):
            return _serve_aggregated(path, surface, extensions)
        content = _content(path, request, surface, extensions)
        if content is None:
            if _is_below_group(path, surface):
                raise status.no_such_path()
            raise routes.NotServedError(path)
        if path == "/version":
            _admit(request, (mediatypes.JSON,))
            return responses.document(200, content, negotiation.Output(is_pretty=True))
        if _is_routed(path):
            _admit(request, mediatypes.BODY_TYPES)
        return responses.document(200, content, request.output)


def _openid(path: str, request: Request, tokens: accounttokens.AccountTokens) -> responses.Response:
    """Return an OpenID discovery document, which relying parties may cache for an hour."""
    if path == openid.KEYS_PATH:
        content, kind = openid.keys(tokens), b"application/jwk-set+json"
    else:
        content = openid.configuration(tokens, server_address=_address(request))
        kind = b"application/json"
    headers = ((b"content-type", kind), (b"cache-control", b"public, max-age=3600"))
    return responses.Response(200, responses.document(200, content).body, headers)


def _content(
    path: str, request: Request, surface: apisurface.ApiSurface, extensions: Sequence[discovery.AggregatedVersion]
) -> Any:
    match path.strip("/").split("/"):
        case [""]:
            groups = (f"/apis/{version}" for each in surface.groups for version in each.api_versions)
            return {"paths": sorted({*_PATHS, *(path for path in groups if path.count("/") == 3)})}
        case ["version"]:
            return version_info()
        case ["api"]:
            return discovery.api_versions(server_address=_address(request))
        case ["apis"]:
            return discovery.group_list(surface, extensions)
        case ["api", version]:
            return discovery.resource_list(surface, "", version=version)
        case ["apis", group]:
            return discovery.group(surface, group, extensions)
        case ["apis", group, version]:
            return discovery.resource_list(surface, group, version=version)
    return None


def _is_below_group(path: str, surface: apisurface.ApiSurface) -> bool:
    match path.strip("/").split("/"):
        case ["api", _]:
            return True
        case ["apis", group, _]:
            group_info = surface.group(group)
            return group_info is not None and not group_info.is_custom
    return False


def _serve_aggregated(
    path: str, surface: apisurface.ApiSurface, extensions: Sequence[discovery.AggregatedVersion]
) -> responses.Response:
    is_core = path == "/api"
    content = discovery.aggregated_core(surface) if is_core else discovery.aggregated(surface, extensions)
    answer = responses.document(200, content)
    return responses.Response(200, answer.body, ((b"content-type", _AGGREGATED), (b"vary", b"Accept")))


def _openapi(path: str, request: Request, surface: apisurface.ApiSurface) -> responses.Response:
    """Return an OpenAPI document. Its address has a hash, so clients may cache it."""
    if path == "/openapi/v3":
        return responses.plain(200, surface.openapi_index())
    media_type = mediatypes.JSON
    document: openapi.Served | None
    if path == "/openapi/v2":
        media_type = _swagger_type(request)
        document = surface.swagger() if media_type == mediatypes.JSON else surface.swagger_protobuf()
    else:
        document = surface.openapi_document(path.removeprefix("/openapi/v3/"))
    if document is None:
        raise routes.NotServedError(path)
    tag = f'"{document.hash}"'.encode()
    headers = [(b"content-type", media_type.encode()), (b"etag", tag), (b"vary", b"Accept")]
    if request.headers.get(b"if-none-match") == tag:
        return responses.Response(304, b"", headers)
    if request.query.get("hash", ("",))[0] == document.hash:
        headers.append((b"cache-control", b"public, immutable"))
    return responses.Response(200, document.data, headers)


def _is_routed(path: str) -> bool:
    """Return True if upstream routes a path by method and media types: ``/api``, and group versions."""
    return path.startswith("/api/") or path == "/api" or path.count("/") == 3


def _admit(request: Request, media_types: tuple[str, ...]) -> None:
    if request.method != "GET":
        raise status.method_not_allowed()
    content_type = request.header(b"content-type")
    if content_type:
        negotiation.admit_body(content_type, media_types)
    negotiation.admit(request.accept, media_types)


def _swagger_type(request: Request) -> str:
    """Return the requested form of OpenAPI v2; a 406 for one that is not served."""
    accept = request.header(b"accept")
    for clause in negotiation.accepts(accept):
        if clause.subtype in ("json", "*"):
            return mediatypes.JSON
        if clause.subtype in _SWAGGER_PROTOBUF:
            return openapi.PROTOBUF
    if accept:
        raise status.not_acceptable((mediatypes.JSON, openapi.PROTOBUF))
    return mediatypes.JSON


def _wants_aggregated(request: Request) -> bool:
    """Return True if a client prefers aggregated discovery in the served form."""
    for clause in negotiation.accepts(request.header(b"accept")):
        parameters = clause.parameters
        if parameters.get("as") == "APIGroupDiscoveryList" and parameters.get("g") == "apidiscovery.k8s.io":
            if parameters.get("v") == "v2":
                return True
        elif clause.subtype in ("json", "*", "yaml"):
            return False
    return False


def _address(request: Request) -> str:
    """Return the address at which the client has reached the server."""
    host, port = request.scope.get("server") or ("127.0.0.1", 0)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def version_info() -> dict[str, str]:
    """Return the content of ``/version``: the Kubernetes version of the API, and drachma's own."""
    major, minor = KUBERNETES_VERSION
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": kubernetesversion.TEXT,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{_architecture()}",
    }


def _architecture() -> str:
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
