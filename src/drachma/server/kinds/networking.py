"""Kinds of ``networking.k8s.io``: ingresses and their classes, IP addresses, network policies."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import metadata
from drachma.validation import networking as rules


class IngressStrategy(DocumentStrategy):
    counts_generations = True
    rechecks_names = True

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        class_annotation = (subject.metadata.get("annotations") or {}).get(rules.CLASS_ANNOTATION)
        if class_annotation is not None and (content.get("spec") or {}).get("ingressClassName") is None:
            yield (f"annotation \"{rules.CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead")


def _ingress_cells(ingress: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(ingress, "spec"), cells.part(ingress, "status")
    hosts = [rule["host"] for rule in spec.get("rules") or () if rule.get("host")]
    points = cells.part(status, "loadBalancer").get("ingress") or ()
    addresses = sorted({each.get("ip") or each.get("hostname", "") for each in points} - {""})
    return [
        cells.name(ingress),
        spec.get("ingressClassName") or "<none>",
        cells.some(hosts) or "*",
        ",".join(addresses),
        "80, 443" if spec.get("tls") else "80",
        cells.since_creation(ingress, now),
    ]


INGRESS: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="ingresses",
    kind="Ingress",
    namespaced=True,
    short_names=("ing",),
    subresources=(resources.status(),),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Class", "The class of the ingress."),
            layout.text("Hosts", "The hosts of the rules."),
            layout.text("Address", "The addresses of the ingress."),
            layout.text("Ports", "At which ports it is reached."),
            layout.AGE,
        ),
        _ingress_cells,
    ),
    rules=rules.KINDS["Ingress"],
    strategy=IngressStrategy,
)


_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"


class IngressClassStrategy(DocumentStrategy):
    counts_generations = True
    rechecks_names = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        if spec.get("parameters") is not None:
            spec["parameters"] = {"scope": "Cluster", **spec["parameters"]}


def _class_cells(each: Document, now: datetime) -> layout.Cells:
    spec = cells.part(each, "spec")
    annotations = cells.part(cells.part(each, "metadata"), "annotations")
    parameters = spec.get("parameters")
    reference = "<none>"
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        reference = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [
        f"{cells.name(each)}{' (default)' if annotations.get(_DEFAULT) == 'true' else ''}",
        spec.get("controller", ""),
        reference,
        cells.since_creation(each, now),
    ]


INGRESS_CLASS: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="ingressclasses",
    kind="IngressClass",
    namespaced=False,
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Controller", "The controller of the class."),
            layout.text("Parameters", "An object with more about how it does."),
            layout.AGE,
        ),
        _class_cells,
    ),
    rules=rules.KINDS["IngressClass"],
    strategy=IngressClassStrategy,
)


class IPAddressStrategy(DocumentStrategy):
    name_rule: metadata.NameRule = staticmethod(rules.address_name_problems)


def _address_cells(address: Document, now: datetime) -> layout.Cells:
    parent = cells.part(cells.part(address, "spec"), "parentRef")
    kind = f"{parent.get('resource', '')}{'.' + parent['group'] if parent.get('group') else ''}"
    parts = [kind, parent.get("namespace", ""), parent.get("name", "")]
    reference = "/".join(part for part in parts if part) or "<none>"
    return [cells.name(address), reference, cells.since_creation(address, now)]


IP_ADDRESS: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="ipaddresses",
    kind="IPAddress",
    namespaced=False,
    short_names=("ip",),
    layout=layout.Layout(
        (layout.NAME, layout.text("ParentRef", "The object that the address belongs to."), layout.AGE), _address_cells
    ),
    rules=rules.KINDS["IPAddress"],
    strategy=IPAddressStrategy,
)


class NetworkPolicyStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        spec = content["spec"] = dict(content.get("spec") or {})
        spec.setdefault("podSelector", {})
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
        for direction in ("ingress", "egress"):
            if spec.get(direction):
                spec[direction] = [_default_protocols(rule) for rule in spec[direction]]


def _default_protocols(rule: Document) -> Document:
    if not rule.get("ports"):
        return rule
    return {**rule, "ports": [{"protocol": "TCP", **port} for port in rule["ports"]]}


def _policy_cells(policy: Document, now: datetime) -> layout.Cells:
    pod_selector = cells.selector(cells.part(policy, "spec").get("podSelector")) or "<none>"
    return [cells.name(policy), pod_selector, cells.since_creation(policy, now)]


NETWORK_POLICY: Final = Kind(
    group="networking.k8s.io",
    versions=("v1",),
    plural="networkpolicies",
    kind="NetworkPolicy",
    namespaced=True,
    short_names=("netpol",),
    layout=layout.Layout(
        (layout.NAME, layout.text("Pod-Selector", "The pods that it is about."), layout.AGE), _policy_cells
    ),
    rules=rules.KINDS["NetworkPolicy"],
    strategy=NetworkPolicyStrategy,
)
