"""A real Prometheus that scrapes the exporter as on a cluster: over HTTPS, with the token of an account that may."""

import contextlib
import json
import pathlib
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
import yaml

from drachma.deployment import components
from tests import patience, ports
from tests.cluster import controlplane, installation, objects, programs
from tests.scenarios import wire

Document = dict[str, Any]

MONITORING = pathlib.Path(__file__).parents[2] / "deploy" / "monitoring"
READER = "metrics-reader"


@pytest.fixture
def cluster(admin: wire.Wire, cleared: None) -> wire.Wire:
    incomplete = objects.resource_slice("n1", 2)
    incomplete["spec"]["pool"]["resourceSliceCount"] = 2
    objects.create(admin, objects.device_class(), objects.node("n1"), incomplete)
    return admin


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def ask(self, path: str, **parameters: str) -> Document:
        """Return the data of an answer, or an empty document while it starts."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        try:
            with urllib.request.urlopen(f"{self._url}/{path}{query}") as answer:
                content: Document = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                return {}
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from None
        except OSError:
            return {}
        data: Document = content["data"]
        return data

    def firing(self) -> set[tuple[str, str]]:
        """Return names and drivers of the alerts that fire."""
        alerts = self.ask("alerts").get("alerts", ())
        return {
            (each["labels"]["alertname"], each["labels"].get("driver", ""))
            for each in alerts
            if each["state"] == "firing"
        }


def _reader_token(admin: wire.Wire) -> str:
    """Return the token of an account that may read metrics and nothing else."""
    objects.create_if_absent(
        admin,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": READER, "namespace": "default"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": READER},
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": READER},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
            "subjects": [{"kind": "ServiceAccount", "name": READER, "namespace": "default"}],
        },
    )
    answer = admin.call("POST", f"/api/v1/namespaces/default/serviceaccounts/{READER}/token", {"spec": {}})
    return str(answer.body["status"]["token"])


def _rules_without_delay() -> Document:
    """Return the shipped alerts, which fire at once: nobody waits ten minutes for a test."""
    rules: Document = yaml.safe_load((MONITORING / "alerts.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule.pop("for", None)
    return rules


@contextlib.contextmanager
def _prometheus(
    plane: controlplane.ControlPlane, folder: pathlib.Path, *, scraped: int, token: str
) -> Iterator[Prometheus]:
    programs.require("prometheus")
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yaml"],
        "scrape_configs": [
            {
                "job_name": "drachma",
                "scheme": "https",
                "tls_config": {"insecure_skip_verify": True},
                "authorization": {"credentials": token},
                "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}],
            }
        ],
    }
    (folder / "alerts.yaml").write_text(yaml.safe_dump(_rules_without_delay()))
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    with ports.reserved() as port:
        command = [
            str(programs.built("prometheus")),
            f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with plane.running("prometheus", command) as running:
            prometheus = Prometheus(port)

            def look() -> Document:
                running.check()
                return prometheus.ask("status/runtimeinfo")

            patience.until(look, what="Prometheus answers")
            yield prometheus


def test_prometheus_scrapes_the_exporter_and_an_alert_fires_and_ends(
    plane: controlplane.ControlPlane, cluster: wire.Wire, tmp_path: pathlib.Path
) -> None:
    kubeconfig = installation.install(plane, cluster, [components.exporter()])["exporter"]
    token = _reader_token(cluster)
    with (
        ports.reserved() as port,
        plane.drachma(
            "exporter", f"--secure-address=127.0.0.1:{port}", "--interval=1", kubeconfig=kubeconfig
        ) as exporter,
        _prometheus(plane, tmp_path, scraped=port, token=token) as prometheus,
    ):
        want = {("DrachmaPoolIncomplete", objects.DRIVER)}
        patience.until(prometheus.firing, lambda firing: want <= firing, what="the incomplete pool is alerted on")
        rest = objects.resource_slice("n1", 2)
        rest["metadata"]["name"], rest["spec"]["pool"]["resourceSliceCount"] = "n1-rest", 2
        rest["spec"]["devices"] = [{"name": "gpu-2"}]
        objects.create(cluster, rest)
        patience.until(
            prometheus.firing, lambda firing: not want & firing, what="the alert ends once the pool is complete"
        )

        groups = prometheus.ask("rules")["groups"]
        assert {rule["name"]: rule["health"] for group in groups for rule in group["rules"]} == {
            rule["alert"]: "ok" for group in _rules_without_delay()["groups"] for rule in group["rules"]
        }
        (sample,) = prometheus.ask("query", query='sum(drachma_devices{state="free"})')["result"]
        assert sample["value"][1] == "3"
        for board in sorted(MONITORING.glob("*.json")):
            for panel in json.loads(board.read_text())["panels"]:
                for query in panel["targets"]:
                    assert prometheus.ask("query", query=query["expr"])["resultType"] == "vector", panel["title"]
        exporter.check()


def test_metrics_are_refused_without_a_token(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    kubeconfig = installation.install(plane, cluster, [components.exporter()])["exporter"]
    with (
        ports.reserved() as port,
        plane.drachma("exporter", f"--secure-address=127.0.0.1:{port}", kubeconfig=kubeconfig) as exporter,
    ):
        unverified = ssl.create_default_context()
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE

        def status(**headers: str) -> int:
            exporter.check()
            request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics", headers=headers)
            try:
                with urllib.request.urlopen(request, context=unverified) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                return 0

        patience.until(status, lambda code: code == 403, what="an anonymous user is refused")
        assert status(Authorization=f"Bearer {_reader_token(cluster)}") == 200
