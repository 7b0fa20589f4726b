"""What all verbs share: the services they use, the circumstances of a write, and how an outcome becomes an answer."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.server import status
from drachma.server.calls import options
from drachma.server.decoding import bodies
from drachma.server.kinds.strategy import Strategy, Write
from drachma.server.pipeline import deletion, registry
from drachma.server.presentation import encoding, forms, negotiation
from drachma.server.reads import listing, watching
from drachma.server.surface import resources, routes, verbs
from drachma.server.wire import responses
from drachma.server.wire.requests import Request
from drachma.store import protocol, record
from drachma.validation import metadata
from drachma.values import quotation

_FOR_PEOPLE: Final = (b"curl", b"Wget", b"Mozilla")
"""How user agents begin that show answers to people as they are."""


_LISTS: Final = frozenset({verbs.LIST, verbs.WATCH})
_LISTED: Final = (*negotiation.BODY_TYPES, *negotiation.STREAM_MEDIA_TYPES)


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What verbs work with."""

    registry: registry.Registry
    deleter: deletion.Deleter
    streams: watching.Streams
    chance: random.Random

    @property
    def store(self) -> protocol.Store:
        return self.registry.store


class Handler:
    """One request for a resource: where it goes, the form of its answer, and the kind's strategy."""

    def __init__(
        self, services: Services, request: Request, route: routes.Route, *, output: negotiation.Output
    ) -> None:
        self.services: Final = services
        self.request: Final = request
        self.route: Final = route
        self.resource: Final[resources.Resource] = route.resource
        self.strategy: Final[Strategy] = services.registry.strategy(route.resource)
        self.encoder: Final[encoding.Encoder] = services.registry.encoder(route.resource)
        self.output: Final = output

    @property
    def scope(self) -> listing.Scope:
        namespace = self.route.namespace if self.resource.namespaced else None
        return listing.Scope(self.resource, namespace)

    @property
    def target(self) -> bodies.Target:
        return bodies.target(self.resource, self.route.version)

    def write(self, *, name: str = "") -> Write:
        """The circumstances of what this request writes."""
        route = self.route
        return Write(
            resource=self.resource,
            version=route.version,
            namespace=route.namespace or "",
            name=name or route.name,
            subresource=route.subresource.name if route.subresource is not None else "",
            verb=route.verb,
            user=self.request.user,
            user_agent=self.request.header(b"user-agent"),
            now=self.services.registry.clock(),
            warnings=self.request.warnings,
        )

    def check_name(self) -> None:
        """Refuses names that cannot be part of a path."""
        problems = metadata.path_segment(self.route.name, is_prefix=False)
        if problems:
            shown = quotation.quote(self.route.name)
            raise status.bad_request(f"Name parameter invalid: {shown}: {';'.join(problems)}")

    def list_options(self) -> options.ListOptions:
        return options.for_list(self.request.query, self.resource, version=self.route.version)

    def answer(self, code: int, outcome: registry.Outcome) -> responses.Response:
        """What a write left, in the form that was asked for."""
        if outcome.stored is not None:
            return self.answer_stored(code, outcome.stored)
        return self.answer_document(code, outcome.document)

    def answer_stored(self, code: int, stored: record.Record) -> responses.Response:
        if self.output.is_plain:
            return responses.plain(code, self.encoder.object(stored, self.route.version), stored=stored)
        return self._present(code, self.encoder.document(stored, self.route.version))

    def answer_document(self, code: int, document: Mapping[str, Any]) -> responses.Response:
        """An object that is not in the store, given in the stored version."""
        return self._present(code, self.strategy.serve(document, self.route.version))

    def answer_list(self, code: int, listed: listing.Listed) -> responses.Response:
        api_version = self.resource.api_version(self.route.version)
        head = forms.list_metadata(listed)
        if self.output.is_plain:
            return responses.plain(code, self._plain_list(api_version, head, listed.records))
        items = [self.encoder.document(stored, self.route.version) for stored in listed.records]
        content = forms.present_list(
            items, head, resource=self.resource, version=self.route.version, output=self.output, context=self._forms()
        )
        return responses.document(code, content, self.output)

    def _plain_list(self, api_version: str, head: dict[str, Any], records: Sequence[record.Record]) -> bytes:
        envelope = {"kind": self.resource.list_kind, "apiVersion": api_version, "metadata": head}
        version = self.route.version
        items = b",".join([self.encoder.item(stored, version) for stored in records])
        return b'%b,"items":[%b]}' % (encoding.encode(envelope)[:-1], items)

    def _present(self, code: int, document: Mapping[str, Any]) -> responses.Response:
        content = forms.present_object(document, resource=self.resource, output=self.output, context=self._forms())
        return responses.document(code, content, self.output)

    def _forms(self) -> forms.Context:
        return forms.Context.of(self.request.query, now=self.services.registry.clock())


def admitted(services: Services, request: Request, route: routes.Route) -> Handler:
    """The handler of a request from the wire, if it can be read and answered in the media types that it names."""
    if route.verb == verbs.PATCH:
        negotiation.admit_body(request.header(b"content-type"), negotiation.PATCH_TYPES)
    negotiation.admit(request.header(b"accept"), _LISTED if route.verb in _LISTS else negotiation.BODY_TYPES)
    handler = Handler(services, request, route, output=negotiate(request))
    warning = resources.deprecation(route.resource, route.version)
    if warning:
        request.warnings.append(warning)
    return handler


def negotiate(request: Request) -> negotiation.Output:
    """The form of the answer that a request asks for."""
    accept, agent, pretty = _wishes(request)
    if not accept and not agent and not pretty:
        return negotiation.PLAIN
    return negotiation.output(accept, agent, pretty=pretty)


def negotiate_refusal(request: Request) -> negotiation.Output:
    """The form of a Status that refuses a request."""
    try:
        accept, agent, pretty = _wishes(request)
    except status.StatusError:
        # The query itself is what is refused.
        return negotiation.PLAIN
    return negotiation.refusal_output(accept, agent, pretty=pretty)


def _wishes(request: Request) -> tuple[str, str, str]:
    query, headers = request.query, request.headers
    agent = headers.get(b"user-agent", b"")
    pretty = query["pretty"][0] if "pretty" in query else ""
    # The cache of negotiated forms must not grow with every client's version string.
    shown = agent.decode("latin-1") if agent.startswith(_FOR_PEOPLE) else ""
    return request.header(b"accept"), shown, pretty
