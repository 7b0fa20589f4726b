"""What it costs to ask whether a user may do something: decisions by roles and bindings, and writes with and without.

``python -m bench authorisation`` runs it alone. Upstream's measure: 100 roles and 200 bindings add at most 20 us.
"""

import asyncio
import contextlib
import functools
import pathlib
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from tests.scenarios import processes
from tests.unit.server import client
from tests.unit.server.client import Client

from bench import load, timing
from bench import server as server_bench
from drachma.api.pod import Pod
from drachma.client import local
from drachma.process import apiserver, components, embedded
from drachma.runtime import Surroundings, clock
from drachma.server import inprocess, rolereconciliation
from drachma.server.access.access import plain
from drachma.server.access.authorization import AlwaysAllow, Attributes, Authoriser
from drachma.server.authorisers import modes
from drachma.server.user import User
from drachma.store import memory
from drachma.testing import claim, device, device_class, node, resource_slice

ROLES = 100
BINDINGS = 200
CREATES = 10_000
BATCH = 500
PAIRS = 10
NODES = 100
PODS = 600
CONNECTIONS = 16
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOKEN = "bench-token"


async def cluster(*, own: int) -> tuple[Authoriser, Client]:
    """The default roles and many more, of which a user has some; the last one allows what is asked for."""
    store = memory.MemoryStore()
    authoriser = modes.make(store, ["Node", "RBAC"])
    server = await client.start(store=store, authoriser=authoriser)
    await rolereconciliation.reconcile(server.app.dispatcher)
    for number in range(ROLES):
        resources = ["resourceclaims"] if number == ROLES - 1 else [f"things-{number}", f"others-{number}"]
        rule = {"apiGroups": ["resource.k8s.io"], "resources": resources, "verbs": ["get", "create", "update"]}
        paths = {"nonResourceURLs": [f"/things/{number}/*"], "verbs": ["get"]}
        role = {"metadata": {"name": f"role-{number}"}, "rules": [rule, paths]}
        assert (await server.call("POST", f"{RBAC}/clusterroles", role)).code == 201
    for number in range(BINDINGS):
        user = "ann" if number >= BINDINGS - own else f"user-{number % 40}"
        binding = {
            "metadata": {"name": f"binding-{number}"},
            "roleRef": {"kind": "ClusterRole", "name": f"role-{number % ROLES}"},
            "subjects": [{"kind": "User", "name": user}],
        }
        assert (await server.call("POST", f"{RBAC}/clusterrolebindings", binding)).code == 201
    return authoriser, server


def decisions() -> None:
    """Questions of a user who has few or many of the roles."""
    ann = User(name="ann", groups=("staff", "system:authenticated"))

    def ask(authoriser: Authoriser, verb: str) -> bool:
        question = Attributes(
            user=ann, verb=verb, group="resource.k8s.io", version="v1", resource="resourceclaims", namespace="default"
        )
        return authoriser.authorise(question).is_allowed

    plain = timing.per_call(lambda: ask(AlwaysAllow(), "create"))
    rows = [("AlwaysAllow", "-", f"{plain * 1e6:.2f}", "-")]
    for own in (1, 5, 20, BINDINGS):
        authoriser, _ = asyncio.run(cluster(own=own))
        assert ask(authoriser, "create")
        assert not ask(authoriser, "delete")
        allowed = timing.per_call(functools.partial(ask, authoriser, "create"), repeat=2_000)
        refused = timing.per_call(functools.partial(ask, authoriser, "delete"), repeat=2_000)
        rows.append(("Node,RBAC", str(own), f"{allowed * 1e6:.2f}", f"{refused * 1e6:.2f}"))
    timing.table(
        f"decisions with {ROLES} roles and {BINDINGS} bindings beside the default ones",
        ("mode", "bindings of the user", "allowed us", "refused us"),
        rows,
    )


class Measured(NamedTuple):
    """Seconds that creates took, and of those of the server's processor."""

    taken: float
    used: float


@contextlib.contextmanager
def serving(folder: pathlib.Path, mode: str) -> Iterator[processes.Process]:
    """A server with a user who may create claims and nothing else."""
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{TOKEN},ann,1\n")
    more = ("--token-auth-file", str(tokens), "--authorization-mode", mode)
    with processes.running(folder / mode, options=more) as server:
        admin = load.Connection(server)
        for path, document in _grants():
            admin.call(load.request(server, "POST", path, msgspec.json.encode(document)))
        server.token = TOKEN
        yield server


def creates(server: processes.Process, start: int) -> Measured:
    """A batch of creates over HTTPS."""
    numbers = range(start, start + BATCH)
    bodies = [msgspec.json.encode(client.claim(f"bench-{number}")) for number in numbers]
    requests = [load.request(server, "POST", client.CLAIMS, body) for body in bodies]
    before = server_bench.cpu_seconds(server)
    taken = load.put(server, requests, connections=CONNECTIONS).seconds
    return Measured(taken, server_bench.cpu_seconds(server) - before)


def _grants() -> list[tuple[str, dict[str, Any]]]:
    rule = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["create"]}
    binding = {"metadata": {"name": "bench"}, "roleRef": {"kind": "ClusterRole", "name": "bench"}}
    return [
        (f"{RBAC}/clusterroles", {"metadata": {"name": "bench"}, "rules": [rule]}),
        (f"{RBAC}/clusterrolebindings", {**binding, "subjects": [{"kind": "User", "name": "ann"}]}),
    ]


def writes() -> None:
    """Durable creates with and without roles, batch by batch in turn.

    Two processes of the same kind differ by a tenth all their lives, so there are several of each, and medians count.
    """
    runs: dict[str, list[Measured]] = {"AlwaysAllow": [], "Node,RBAC": []}
    for _ in range(PAIRS):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            servers = {mode: stack.enter_context(serving(pathlib.Path(folder), mode)) for mode in runs}
            for start in range(0, CREATES // PAIRS, BATCH):
                for mode, server in servers.items():
                    runs[mode].append(creates(server, start))
    best = {mode: Measured(*map(statistics.median, zip(*measured, strict=True))) for mode, measured in runs.items()}
    plain = best["AlwaysAllow"]
    timing.table(
        f"{CREATES:,} durable creates over HTTPS, {CONNECTIONS} connections, {PAIRS} servers of each in turn, medians",
        ("mode", "per second", "of AlwaysAllow", "server CPU us", "of AlwaysAllow"),
        [
            (
                mode,
                f"{BATCH / each.taken:,.0f}",
                f"{plain.taken / each.taken:.0%}",
                f"{each.used / BATCH * 1e6:.0f}",
                f"{each.used / plain.used:.0%}",
            )
            for mode, each in best.items()
        ],
    )


async def scheduled(mode: str) -> float:
    """Processor seconds until pods with a claim each are bound, by a scheduler that is a user of its own."""
    store = memory.MemoryStore()
    time_of_day = clock.SystemClock()
    access = plain(store, clock=time_of_day.utc, authoriser=modes.make(store, mode.split(",")))
    built = await apiserver.build(store, utc=time_of_day.utc, chance=random.Random(1), access=access)
    await rolereconciliation.reconcile(built.dispatcher)
    user = User(name="system:kube-scheduler", groups=("system:authenticated",))
    admin = local.LocalClient(inprocess.InProcess(built.dispatcher))
    surroundings = Surroundings(local.LocalClient(inprocess.InProcess(built.dispatcher, user=user)))
    await admin.create(device_class("gpu").build())
    for number in range(NODES):
        name = f"n{number}"
        await admin.create(node(name).build())
        await admin.create(
            resource_slice(f"s{number}", driver="gpu.example.com")
            .on_node(name)
            .devices(*map(device, "abcdefgh"))
            .build()
        )
    async with embedded.running(surroundings, components.scheduler):
        before = time.process_time()
        for number in range(PODS):
            await admin.create(claim(f"c{number}").request("r", device_class="gpu").build())
            await admin.create_document(Pod, _pod(number))
        while any(not each.spec.node_name for each in (await admin.list(Pod)).items):
            await asyncio.sleep(0.05)
        used = time.process_time() - before
    await store.close()
    return used


def _pod(number: int) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.example/pause:3.10"}
    claims = [{"name": "x", "resourceClaimName": f"c{number}"}]
    metadata = {"name": f"p{number}", "namespace": "default"}
    return {"metadata": metadata, "spec": {"containers": [container], "resourceClaims": claims}}


def scheduling() -> None:
    """A scheduler with and without roles, turn by turn."""
    runs: dict[str, list[float]] = {"AlwaysAllow": [], "Node,RBAC": []}
    for _ in range(3):
        for mode, used in runs.items():
            used.append(asyncio.run(scheduled(mode)))
    plain_seconds = min(runs["AlwaysAllow"])
    timing.table(
        f"{PODS:,} pods with a claim each on {NODES} nodes, all in one process, the best of three",
        ("mode", "CPU us a pod", "of AlwaysAllow"),
        [(mode, f"{min(used) / PODS * 1e6:,.0f}", f"{min(used) / plain_seconds:.0%}") for mode, used in runs.items()],
    )


def main() -> None:
    decisions()
    writes()
    scheduling()


if __name__ == "__main__":
    main()
