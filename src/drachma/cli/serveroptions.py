"""Options of commands that serve the API: one place for ``drachma apiserver`` and ``drachma up``.

Options that belong together are the fields of a struct. A command takes the struct as a parameter, and :func:`expand`
replaces that parameter by its fields, because Typer knows parameters of functions only.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options
from drachma.listening import limits as ports
from drachma.server.wire import limits as requestlimits

if TYPE_CHECKING:
    from drachma.process import hosting, storekeeping
    from drachma.server.wire.app import Additions


_PORTS: Final = ports.Limits()
_REQUESTS: Final = requestlimits.Limits()

RequestTimeout: TypeAlias = Annotated[str, typer.Option(help="Time for a request, other than a watch or a stream.")]
MaxRequestsInflight: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Requests served at once; priority levels share the sum of this and the next option.")
]
MaxMutatingRequestsInflight: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Added to --max-requests-inflight; the sum is shared by reads and writes.")
]
MaxWatches: TypeAlias = Annotated[int, typer.Option(min=0, help="Watches open at once.")]
MaxWatchesPerUser: TypeAlias = Annotated[int, typer.Option(min=0, help="Watches of one user; not for system:masters.")]
MaxConnections: TypeAlias = Annotated[int, typer.Option(min=8, help="Connections to all ports of the process.")]
PeerConnectionsPercent: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100, help="Share of the connections that one address may hold.")
]
LoopbackConnectionsPercent: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100, help="Share of the connections that clients on this machine may hold together.")
]
BodyTimeout: TypeAlias = Annotated[str, typer.Option(help="Time for the whole body of a request.")]
UnreadTimeout: TypeAlias = Annotated[
    str, typer.Option(help="Time that a client may leave an answer or a watch unread before its connection ends.")
]

DEFAULT_REQUEST_TIMEOUT: Final = f"{_REQUESTS.request_seconds:g}s"
DEFAULT_REQUESTS: Final = 400
DEFAULT_MUTATING_REQUESTS: Final = 200
DEFAULT_WATCHES: Final = _REQUESTS.watches
DEFAULT_USER_WATCHES: Final = _REQUESTS.user_watches
DEFAULT_CONNECTIONS: Final = _PORTS.connections
DEFAULT_PEER_PERCENT: Final = _PORTS.peer_percent
DEFAULT_LOOPBACK_PERCENT: Final = _PORTS.loopback_percent
DEFAULT_BODY_TIMEOUT: Final = f"{_PORTS.body_seconds:g}s"
DEFAULT_UNREAD_TIMEOUT: Final = f"{_PORTS.unread_seconds:g}s"


class LimitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on requests and connections, as options."""

    request_timeout: RequestTimeout = DEFAULT_REQUEST_TIMEOUT
    max_requests_inflight: MaxRequestsInflight = DEFAULT_REQUESTS
    max_mutating_requests_inflight: MaxMutatingRequestsInflight = DEFAULT_MUTATING_REQUESTS
    max_watches: MaxWatches = DEFAULT_WATCHES
    max_watches_per_user: MaxWatchesPerUser = DEFAULT_USER_WATCHES
    max_connections: MaxConnections = DEFAULT_CONNECTIONS
    peer_connections_percent: PeerConnectionsPercent = DEFAULT_PEER_PERCENT
    loopback_connections_percent: LoopbackConnectionsPercent = DEFAULT_LOOPBACK_PERCENT
    body_timeout: BodyTimeout = DEFAULT_BODY_TIMEOUT
    unread_timeout: UnreadTimeout = DEFAULT_UNREAD_TIMEOUT

    def build(self) -> hosting.Limits:
        """Return the limits. Raises errors.InvalidValueError for an invalid option."""
        from drachma.process import hosting

        body_seconds = options.seconds(self.body_timeout, name="--body-timeout")
        unread_seconds = options.seconds(self.unread_timeout, name="--unread-timeout")
        return hosting.Limits(
            requests=requestlimits.Limits(
                request_seconds=options.seconds(self.request_timeout, name="--request-timeout"),
                seats=self.max_requests_inflight + self.max_mutating_requests_inflight,
                bodies=requestlimits.BodyLimits(seconds=body_seconds),
                watches=self.max_watches,
                user_watches=self.max_watches_per_user,
                unread_seconds=unread_seconds,
            ),
            ports=ports.Limits(
                connections=self.max_connections,
                peer_percent=self.peer_connections_percent,
                loopback_percent=self.loopback_connections_percent,
                body_seconds=body_seconds,
                unread_seconds=unread_seconds,
            ),
        )


class StoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the data directory, apart from its path."""

    encryption_provider_config: options.EncryptionProviderConfig = None
    store_reserve: options.StoreReserve = options.DEFAULT_STORE_RESERVE
    backup_dir: options.BackupDir = None
    backup_every: options.BackupEvery = options.DEFAULT_BACKUP_EVERY
    backup_keep: options.BackupKeep = options.DEFAULT_BACKUP_KEEP

    def build(self, *, is_kept: bool) -> storekeeping.Options:
        """Return the settings of the data directory. Raises errors.InvalidValueError for options that need one."""
        from drachma.process import scheduledbackup, storekeeping

        needs_data = (
            ("--encryption-provider-config", self.encryption_provider_config),
            ("--backup-dir", self.backup_dir),
        )
        for name, value in needs_data:
            if value is not None and not is_kept:
                raise errors.InvalidValueError(f"{name} {value}: goes with --data only")
        schedule = None
        if self.backup_dir is not None:
            every = options.seconds(self.backup_every, name="--backup-every")
            schedule = scheduledbackup.Schedule(folder=self.backup_dir, every=every, keep=self.backup_keep)
        return storekeeping.Options(
            reserve_bytes=self.store_reserve * 2**20, encryption_file=self.encryption_provider_config, backups=schedule
        )


RuntimeConfig: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Comma-separated API versions to switch: group/version=false, or api/beta=false, api/alpha=false."
    ),
]
EmulatedVersion: TypeAlias = Annotated[
    str, typer.Option(help="Version of Kubernetes to emulate. Only the version that drachma implements is accepted.")
]


ServiceClusterIpRange: TypeAlias = Annotated[
    str, typer.Option(help="Range of service addresses; with one of each IP family, comma-separated, dual-stack.")
]


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the API server, apart from its store and its limits."""

    data: options.Data = None
    listen: options.Listen = ""
    kubeconfig_out: options.KubeconfigOut = None
    feature_gates: options.FeatureGates = ""
    enable_first_alpha: options.EnableFirstAlpha = False
    runtime_config: RuntimeConfig = ""
    emulated_version: EmulatedVersion = ""
    token_auth_file: options.TokenAuthFile = None
    client_ca_file: options.ClientCaFile = None
    service_account_key_file: options.ServiceAccountKeyFile = None
    service_account_signing_key_file: options.ServiceAccountSigningKeyFile = None
    service_account_issuer: options.ServiceAccountIssuer = None
    api_audiences: options.ApiAudiences = ""
    enable_bootstrap_token_auth: options.EnableBootstrapTokenAuth = False
    disable_admission_plugins: options.DisableAdmissionPlugins = ""
    admission_control_config_file: options.AdmissionControlConfigFile = None
    authorization_mode: options.AuthorizationMode = options.DEFAULT_AUTHORIZATION_MODE
    event_ttl: options.EventTtl = options.DEFAULT_EVENT_TTL
    service_cluster_ip_range: ServiceClusterIpRange = "10.96.0.0/12"
    audit_policy_file: options.AuditPolicyFile = None
    audit_log_path: options.AuditLogPath = None
    kubelet_certificate_authority: options.KubeletCertificateAuthority = None
    allow_loopback_nodes: options.AllowLoopbackNodes = False
    cache_bytes: options.CacheBytes = options.DEFAULT_CACHE_BYTES

    def build(
        self,
        store: StoreOptions,
        limits: LimitOptions,
        *,
        bootstrap_kubeconfig_out: options.BootstrapKubeconfigOut = None,
        has_gangs: bool = False,
        additions: Additions | None = None,
        announce: hosting.Announce | None = None,
    ) -> hosting.Options:
        """Return the settings of the API server, with additions to its API, and limit the caches of this process.

        ``announce`` tells the user that the server is ready; by default it prints the address.

        Raises errors.InvalidValueError for an invalid option.
        """
        from drachma.bounds import memory
        from drachma.listening import addresses
        from drachma.process import hosting, serverfiles
        from drachma.server.surface import runtimeconfig
        from drachma.server.wire.app import Additions
        from drachma.values import serviceranges

        _check_emulated_version(self.emulated_version)
        runtime_config = runtimeconfig.RuntimeConfig.parse(self.runtime_config)
        memory.PROCESS.limit = options.size_in_bytes(self.cache_bytes, name="--cache-bytes")
        feature_gates = options.with_first_alpha(
            options.with_gangs(self.feature_gates, has_gangs), self.enable_first_alpha
        )
        return hosting.Options(
            data=self.data,
            address=addresses.Address.parse(self.listen or options.DEFAULT_LISTEN),
            kubeconfig_out=self.kubeconfig_out,
            bootstrap_kubeconfig_out=bootstrap_kubeconfig_out,
            gates=gates.Gates.parse(feature_gates),
            access=serverfiles.AccessOptions(
                token_auth_file=self.token_auth_file,
                client_ca_file=self.client_ca_file,
                service_account_key_files=tuple(self.service_account_key_file or ()),
                service_account_signing_key_file=self.service_account_signing_key_file,
                service_account_issuers=tuple(self.service_account_issuer or ()),
                api_audiences=tuple(filter(None, self.api_audiences.split(","))),
                is_open_to_bootstrap_tokens=self.enable_bootstrap_token_auth or bootstrap_kubeconfig_out is not None,
                authorization_modes=serverfiles.authorization_modes(self.authorization_mode),
            ),
            event_ttl=options.seconds(self.event_ttl, name="--event-ttl"),
            limits=limits.build(),
            disabled_plugins=options.plugins(self.disable_admission_plugins),
            admission_configuration=self.admission_control_config_file,
            audit=serverfiles.AuditOptions(policy_file=self.audit_policy_file, log_path=self.audit_log_path),
            kubelet_certificate_authority=self.kubelet_certificate_authority,
            allows_loopback_nodes=self.allow_loopback_nodes,
            additions=msgspec.structs.replace(
                additions or Additions(),
                runtime_config=runtime_config,
                service_ranges=serviceranges.ServiceRanges.parse(self.service_cluster_ip_range),
            ),
            keeping=store.build(is_kept=self.data is not None),
            announce=announce or _announce_address,
        )


def _check_emulated_version(version: str) -> None:
    """Refuse to emulate another version of Kubernetes, in upstream's notations ``1.36`` and ``kube=1.36``."""
    from drachma.server.wire import nonresource

    own = ".".join(nonresource.KUBERNETES_VERSION)
    if version and version.removeprefix("kube=").removeprefix("v") != own:
        raise errors.InvalidValueError(
            f"--emulated-version {version}: drachma implements Kubernetes {own} and emulates no other version; "
            "--feature-gates and --runtime-config switch single features and API versions off"
        )


async def _announce_address(host: hosting.Host) -> None:
    typer.echo(f"serving on {host.addresses_text}")


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters of struct types are replaced by their fields."""
    hints = typing.get_type_hints(command, include_extras=True)
    groups: dict[str, type[msgspec.Struct]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            groups[parameter.name] = kind
            parameters += _fields(kind)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))

    @functools.wraps(command)
    def expanded(**values: object) -> None:
        structs = {
            name: group(**{field: values.pop(field) for field in group.__struct_fields__})
            for name, group in groups.items()
        }
        command(**structs, **values)

    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _fields(group: type[msgspec.Struct]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in msgspec.structs.fields(group)
    ]
