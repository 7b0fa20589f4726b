"""Options that several commands share, each declared once.

Every command imports this module, so it imports only what declares options. Functions that turn the text of an option
into a value import what they need.
"""

from __future__ import annotations

import enum
import pathlib
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

from drachma import errors
from drachma.api.gates import Gate
from drachma.server.admission import pluginnames

if TYPE_CHECKING:
    from drachma import allocator
    from drachma.listening import addresses

# Features

FeatureGates: TypeAlias = Annotated[
    str, typer.Option(help="Comma-separated feature gates by their upstream names, such as Name=true,Other=false.")
]
Gangs: TypeAlias = Annotated[
    bool, typer.Option("--gangs", help="Schedule all pods of a pod group or none: sets GenericWorkload=true.")
]
EnableFirstAlpha: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--enable-first-alpha",
        help="Serve resource.k8s.io/v1alpha2, the first alpha of structured parameters: sets DrachmaFirstAlpha=true.",
    ),
]


def with_first_alpha(feature_gates: str, enable_first_alpha: bool) -> str:
    """Return the feature gates, with the gate of the first alpha if it is enabled."""
    return f"{feature_gates},{Gate.FIRST_ALPHA}=true" if enable_first_alpha else feature_gates


def with_gangs(feature_gates: str, gangs: bool) -> str:
    """Return the feature gates, with the gate of gang scheduling if it is enabled."""
    return f"{feature_gates},{Gate.GENERIC_WORKLOAD}=true" if gangs else feature_gates


# Devices and nodes to prefer

Policy: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Devices and nodes to prefer: first-fit (as kube-scheduler), pack, spread, whole-partitions, "
        "domain=ATTRIBUTE for devices with equal values of an attribute, or a packing policy for nodes: random, "
        "dot-product, gpu-clustering, gpu-packing, best-fit, fgd, drachma."
    ),
]


def policy(text: str) -> allocator.Preference:
    """Return the preference that ``--policy`` names. Raises errors.InvalidValueError for an unknown policy."""
    from drachma import allocator
    from drachma.scheduler.packing import policies

    if text in policies.POLICIES:
        return allocator.NodePacking(text)
    name, _, attribute = text.partition("=")
    if name == "domain" and "/" in attribute:
        return allocator.OneDomain(attribute)
    try:
        return allocator.Policy(text)
    except ValueError:
        names = ", ".join((*(each.value for each in allocator.Policy), *policies.POLICIES))
        raise errors.InvalidValueError(
            f"--policy {text!r}: expected {names}, or domain=DOMAIN/ATTRIBUTE with the full name of an attribute"
        ) from None


# Input and output

Filename: TypeAlias = Annotated[
    list[str], typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")
]
Filenames: TypeAlias = Annotated[
    list[str] | None, typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")
]
ClusterFiles: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "-f", "--filename", help="A file, a folder, or - for standard input, to read instead of an API server."
    ),
]


class Format(enum.StrEnum):
    """Format of documents."""

    YAML = "yaml"
    JSON = "json"


class TableFormat(enum.StrEnum):
    """Format of tables."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


Output: TypeAlias = Annotated[Format | None, typer.Option("-o", "--output", help="Write a document in this format.")]
DocumentFormat: TypeAlias = Annotated[Format, typer.Option("-o", "--output", help="Format of the documents.")]

# Commands that serve the API

DEFAULT_LISTEN: Final = "127.0.0.1:6443"

Data: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(
        help="Data directory. By default drachma up has one in your state directory, and drachma apiserver keeps "
        "objects in memory only."
    ),
]
Listen: TypeAlias = Annotated[
    str, typer.Option(help=f"host:port to listen on; port 0 takes any free port; {DEFAULT_LISTEN} by default.")
]
KubeconfigOut: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="File for a kubeconfig with the admin's credentials alone.")
]

DEFAULT_AUTHORIZATION_MODE: Final = "Node,RBAC"

TokenAuthFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help='Static tokens, in lines of token,user,uid,"group,group".')
]
ClientCaFile: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Authorities of client certificates; CN is the user, O are the groups."),
]
ServiceAccountKeyFile: TypeAlias = Annotated[
    list[pathlib.Path] | None, typer.Option(help="Keys that verify service account tokens; may be repeated.")
]
ServiceAccountSigningKeyFile: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Private key that signs service account tokens; one is created and kept if there is none."),
]
ServiceAccountIssuer: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Issuer of service account tokens; may be repeated. The first one signs, all are trusted."),
]
ApiAudiences: TypeAlias = Annotated[str, typer.Option(help="Comma-separated token audiences; the issuers by default.")]
EnableBootstrapTokenAuth: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--enable-bootstrap-token-auth", help="Authenticate clients by bootstrap tokens, secrets in kube-system."
    ),
]
BootstrapKubeconfigOut: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="File for a kubeconfig with which kubelets request certificates; valid for a day."),
]
AuthorizationMode: TypeAlias = Annotated[
    str, typer.Option(help="Comma-separated authorization modes: AlwaysAllow, Node, RBAC.")
]

KubeletCertificateAuthority: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Authority of the kubelets' serving certificates; without one they are not verified."),
]
AllowLoopbackNodes: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-loopback-nodes",
        help="Connect to agents of other processes at loopback addresses of this machine, for logs and commands.",
    ),
]

DEFAULT_EVENT_TTL: Final = "1h"

EventTtl: TypeAlias = Annotated[str, typer.Option(help="Retention time of events, such as 1h or 90s.")]
AuditPolicyFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="Audit policy: a Policy of audit.k8s.io/v1.")
]
AuditLogPath: TypeAlias = Annotated[
    str | None, typer.Option(help="Audit log, one JSON document a line; - for standard output.")
]

CacheBytes: TypeAlias = Annotated[
    str, typer.Option(help="Memory that all caches of this process may hold together, such as 256Mi.")
]
DEFAULT_CACHE_BYTES: Final = "256Mi"

FilterTimeout: TypeAlias = Annotated[
    float, typer.Option(min=0.001, help="Seconds that allocating devices on one node may take.")
]
DEFAULT_FILTER_TIMEOUT: Final = 10.0
EncryptionProviderConfig: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Encryption of objects on disk: an EncryptionConfiguration of apiserver.config.k8s.io/v1."),
]
StoreReserve: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Mebibytes of disk space that are kept so that a full disk still takes deletes.")
]
DEFAULT_STORE_RESERVE: Final = 16
BackupDir: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="Folder for scheduled backups of the data directory.")
]
BackupEvery: TypeAlias = Annotated[str, typer.Option(help="Time between two scheduled backups, such as 6h.")]
DEFAULT_BACKUP_EVERY: Final = "24h"
BackupKeep: TypeAlias = Annotated[int, typer.Option(min=1, help="Number of scheduled backups to keep.")]
DEFAULT_BACKUP_KEEP: Final = 7
DisableAdmissionPlugins: TypeAlias = Annotated[
    str,
    typer.Option(help=f"Comma-separated admission plugins to disable: {', '.join(pluginnames.DISABLEABLE)}."),
]
AdmissionControlConfigFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="AdmissionConfiguration with the defaults and exemptions of PodSecurity.")
]


def plugins(text: str) -> tuple[str, ...]:
    """Return the names of admission plugins to disable. Raises errors.InvalidValueError for other names."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in pluginnames.DISABLEABLE:
            raise errors.InvalidValueError(
                f"admission plugin {name!r}: cannot be disabled, only {', '.join(pluginnames.DISABLEABLE)}"
            )
    return names


# Autoscaling

GroupCommand: TypeAlias = Annotated[
    str, typer.Option(help="Command to run for each change, followed by 'grow GROUP COUNT' or 'remove GROUP NODE'.")
]
SimulatedNodes: TypeAlias = Annotated[
    bool, typer.Option("--simulated", help="Create and delete Node objects only, without machines.")
]
Unneeded: TypeAlias = Annotated[
    float, typer.Option(min=0, help="Seconds that a node must be unneeded before it is removed.")
]
Cooldown: TypeAlias = Annotated[
    float, typer.Option(min=0, help="Seconds after adding nodes in which no node is removed.")
]
DEFAULT_UNNEEDED: Final = 600.0
DEFAULT_COOLDOWN: Final = 600.0


Objective: TypeAlias = Annotated[Literal["nodes", "price", "preference"], typer.Option(help="Quantity to minimise.")]

# Recording

Record: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Record the scheduler's decisions and their inputs in this file, for drachma replay."),
]
RecordSize: TypeAlias = Annotated[
    int, typer.Option(min=1, help="Size in MiB at which the recording is renamed to FILE.1 and a new one begins.")
]
DEFAULT_RECORD_SIZE: Final = 64

# Queueing

Queueing: TypeAlias = Annotated[
    bool, typer.Option("--queueing", help="Serve Kueue's kinds, and admit jobs by queues and quota as Kueue does.")
]
QueueingConfig: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="File with Kueue's Configuration; it is read again when it changes."),
]

# Clusters of drachma up

ClusterName: TypeAlias = Annotated[str, typer.Option("--name", help="Name of the cluster.")]
ClusterData: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option("--data", help="Data directory, for a cluster that was started with --data.")
]

# Commands that work on an API server

Kubeconfig: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="Kubeconfig of the API server; by default the one that kubectl uses.")
]
Context: TypeAlias = Annotated[str, typer.Option(help="Context of the kubeconfig.")]
LeaderElect: TypeAlias = Annotated[bool, typer.Option(help="Work only while holding the lease.")]
LeaseName: TypeAlias = Annotated[str, typer.Option("--leader-elect-resource-name", help="Name of the lease.")]
LeaseNamespace: TypeAlias = Annotated[
    str, typer.Option("--leader-elect-resource-namespace", help="Namespace of the lease.")
]
MetricsPort: TypeAlias = Annotated[
    int,
    typer.Option(help="Port of the loopback address for /healthz, /readyz and /metrics; 0 serves none."),
]
SecureAddress: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="Address for /healthz, /readyz and /metrics over HTTPS. Metrics need the permission to get /metrics.",
    ),
]


class LogLines(enum.StrEnum):
    """Format of log lines."""

    TEXT = "text"
    JSON = "json"

    @property
    def is_json(self) -> bool:
        return self is LogLines.JSON


LogFormat: TypeAlias = Annotated[LogLines, typer.Option(help="Format of log lines.")]
Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", "-v", help="Log debug messages.")]


def seconds(text: str, *, name: str) -> float:
    """Return the duration of an option in seconds. Raises errors.InvalidValueError unless it is positive."""
    from drachma.cel.runtime import instants

    duration = instants.parse_duration(text)
    if duration is None or duration.nanos <= 0:
        raise errors.InvalidValueError(f"{name} {text!r}: expected a positive duration, such as 1h30m or 90s")
    return duration.nanos / 10**9


def size_in_bytes(text: str, *, name: str) -> int:
    """Return the size of an option in bytes. Raises errors.InvalidValueError unless it is a positive quantity."""
    from drachma.values import quantity

    try:
        amount = quantity.Quantity.parse(text)
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"{name} {text!r}: {error}") from None
    if amount.sign <= 0:
        raise errors.InvalidValueError(f"{name} {text!r}: expected a positive quantity, such as 256Mi")
    return amount.as_int64()


def secure_address(text: str) -> addresses.Address | None:
    """Return the address of ``--secure-address``; None without one. Raises errors.InvalidValueError."""
    from drachma.listening import addresses

    return addresses.Address.parse(text) if text else None


class PlayGoal(enum.StrEnum):
    """State that all pods of ``drachma play --wait`` must reach."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    COMPLETE = "complete"
