"""Options that several commands have, each written once."""

import enum
import pathlib
from typing import Annotated, Final, TypeAlias

import typer

from drachma import allocator, errors
from drachma.api.gates import Gate
from drachma.cel.runtime import instants
from drachma.node import hardware
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.offline import machineprofiles
from drachma.server.pipeline import phases
from drachma.values import quantity

FeatureGates: TypeAlias = Annotated[str, typer.Option(help="Name=true,Other=false; features by upstream's names.")]
Gangs: TypeAlias = Annotated[
    bool, typer.Option("--gangs", help="Pods of a group get their nodes together or not at all: GenericWorkload=true.")
]


Policy: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Which devices and nodes to prefer: first-fit (as kube-scheduler), pack, spread, whole-partitions, "
        "or domain=ATTRIBUTE for devices that agree on an attribute."
    ),
]


def policy(text: str) -> allocator.Preference:
    """What ``--policy`` says; InvalidValueError for what it cannot mean."""
    name, _, attribute = text.partition("=")
    if name == "domain" and "/" in attribute:
        return allocator.OneDomain(attribute)
    try:
        return allocator.Policy(text)
    except ValueError:
        names = ", ".join(each.value for each in allocator.Policy)
        raise errors.InvalidValueError(
            f"--policy {text!r}: expected {names}, or domain=DOMAIN/ATTRIBUTE with the full name of an attribute"
        ) from None


EnableFirstAlpha: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--enable-first-alpha",
        help="Serve resource.k8s.io/v1alpha2, the first alpha of structured parameters: DrachmaFirstAlpha=true.",
    ),
]


def with_first_alpha(feature_gates: str, enable_first_alpha: bool) -> str:
    """The feature gates, with that of the first alpha if it is asked for."""
    return f"{feature_gates},{Gate.FIRST_ALPHA}=true" if enable_first_alpha else feature_gates


def with_gangs(feature_gates: str, gangs: bool) -> str:
    """The feature gates, with that of gangs if they are asked for."""
    return f"{feature_gates},{Gate.GENERIC_WORKLOAD}=true" if gangs else feature_gates


Filename: TypeAlias = Annotated[
    list[str], typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")
]


class Format(enum.StrEnum):
    """How documents are written."""

    YAML = "yaml"
    JSON = "json"


# Commands that serve the API

DEFAULT_LISTEN: Final = "127.0.0.1:6443"

Data: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="The data directory; without one, everything is forgotten in the end.")
]
Listen: TypeAlias = Annotated[str, typer.Option(help="host:port to listen on; port 0 takes any.")]
KubeconfigOut: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="Where to write a kubeconfig for the admin.")
]

DEFAULT_AUTHORIZATION_MODE: Final = "Node,RBAC"

TokenAuthFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help='Who shows which token, in lines of token,user,uid,"group,group".')
]
ClientCaFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="Authorities whose certificates clients may show; CN is the user, O groups.")
]
ServiceAccountKeyFile: TypeAlias = Annotated[
    list[pathlib.Path] | None, typer.Option(help="Keys that service account tokens are verified with; may be repeated.")
]
ServiceAccountSigningKeyFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="The private key that signs them; without one, one is made and kept.")
]
ServiceAccountIssuer: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="Who issues them; more than one may be trusted, the first one signs.")
]
ApiAudiences: TypeAlias = Annotated[
    str, typer.Option(help="Whom tokens must be meant for, comma between; the issuers.")
]
EnableBootstrapTokenAuth: TypeAlias = Annotated[
    bool,
    typer.Option("--enable-bootstrap-token-auth", help="Let in by the tokens that secrets in kube-system hold."),
]
BootstrapKubeconfigOut: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Where to write a kubeconfig by which kubelets come in and get certificates; good for a day."),
]
AuthorizationMode: TypeAlias = Annotated[
    str, typer.Option(help="Who decides what users may do, comma between: AlwaysAllow, Node, RBAC.")
]

KubeletCertificateAuthority: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Authority of the certificates that kubelets serve with; without it they are not verified."),
]
AllowLoopbackNodes: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-loopback-nodes",
        help="Connect to agents of other processes at loopback addresses of this machine, for logs and commands.",
    ),
]

DEFAULT_EVENT_TTL: Final = "1h"

EventTtl: TypeAlias = Annotated[str, typer.Option(help="How long events are kept, such as 1h or 90s.")]
AuditPolicyFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="What is noted of which requests: a Policy of audit.k8s.io/v1.")
]
AuditLogPath: TypeAlias = Annotated[
    str | None, typer.Option(help="Where it is noted, one JSON document a line; - for standard output.")
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

Unneeded: TypeAlias = Annotated[float, typer.Option(min=0, help="Seconds that nobody needs a node before it goes.")]
Cooldown: TypeAlias = Annotated[float, typer.Option(min=0, help="Seconds after growing before any node goes.")]
DEFAULT_UNNEEDED: Final = 600.0
DEFAULT_COOLDOWN: Final = 600.0

Record: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Keep the scheduler's decisions, and what they depend on, in this file; see drachma replay."),
]
RecordSize: TypeAlias = Annotated[
    int, typer.Option(min=1, help="MiB of decisions after which the file becomes FILE.1 and a new one is begun.")
]
DEFAULT_RECORD_SIZE: Final = 64


Queueing: TypeAlias = Annotated[
    bool, typer.Option("--queueing", help="Queues and quota for jobs, as Kueue has them: its kinds, and who admits.")
]
QueueingConfig: TypeAlias = Annotated[
    pathlib.Path | None,
    typer.Option(help="Kueue's Configuration, from a file that is looked at again when it changes."),
]
Nodes: TypeAlias = Annotated[int, typer.Option(min=0, max=10_000, help="How many simulated machines there are.")]
Profile: TypeAlias = Annotated[
    str,
    typer.Option(
        help="What each of them has: cpu, gpu-server, mig, nic, numa, rack, or a file with a Node and its slices."
    ),
]
PretendNodes: TypeAlias = Annotated[
    bool, typer.Option("--pretend-nodes", help="Keep nodes that others create alive, as if there were machines.")
]


def machines(profile: str, count: int) -> hardware.Hardware | None:
    """The simulated machines that options ask for, if any; InvalidValueError or DecodeError for a bad profile."""
    return machineprofiles.build(profile, count) if count else None


PluginDirectory: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="Where drivers register, a folder a machine; without it they are simulated.")
]
ContainerRuntime: TypeAlias = Annotated[
    RuntimeName, typer.Option("--runtime", help="What runs the containers of these machines.")
]
AllowUnenforcedSecurity: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-unenforced-security",
        help="Run containers whose security context the runtime cannot enforce, with a warning event.",
    ),
]
DisableAdmissionPlugins: TypeAlias = Annotated[
    str, typer.Option(help=f"Plugins of admission to leave out, comma between: {', '.join(phases.DISABLEABLE)}.")
]


AdmissionControlConfigFile: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="AdmissionConfiguration with the defaults and exemptions of PodSecurity.")
]


def plugins(text: str) -> tuple[str, ...]:
    """Names of plugins that can be left out; InvalidValueError for others."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in phases.DISABLEABLE:
            raise errors.InvalidValueError(
                f"admission plugin {name!r}: can be left out are {', '.join(phases.DISABLEABLE)}"
            )
    return names


# Commands that work on an API server

Kubeconfig: TypeAlias = Annotated[
    pathlib.Path | None, typer.Option(help="How to reach the API server; found where kubectl looks by default.")
]
Context: TypeAlias = Annotated[str, typer.Option(help="The context of the kubeconfig.")]
LeaderElect: TypeAlias = Annotated[bool, typer.Option(help="Work only while holding the lease.")]
LeaseName: TypeAlias = Annotated[str, typer.Option("--leader-elect-resource-name", help="The name of the lease.")]
LeaseNamespace: TypeAlias = Annotated[str, typer.Option("--leader-elect-resource-namespace", help="Its namespace.")]
MetricsPort: TypeAlias = Annotated[int, typer.Option(help="Serve metrics on this port of the loopback address; 0: no.")]


def seconds(text: str, *, name: str) -> float:
    """How long an option says; InvalidValueError for a text that is no time, or none at all."""
    duration = instants.parse_duration(text)
    if duration is None or duration.nanos <= 0:
        raise errors.InvalidValueError(f"{name} {text!r}: expected more than no time, such as 1h30m or 90s")
    return duration.nanos / 10**9


def size_in_bytes(text: str, *, name: str) -> int:
    """Return the bytes that an option says. Raises InvalidValueError for a text that is no positive quantity."""
    try:
        amount = quantity.Quantity.parse(text)
    except errors.InvalidValueError as error:
        raise errors.InvalidValueError(f"{name} {text!r}: {error}") from None
    if amount.sign <= 0:
        raise errors.InvalidValueError(f"{name} {text!r}: expected more than nothing, such as 256Mi")
    return amount.as_int64()
