"""A group of machines that the autoscaler orders from a command, which writes down what was ordered."""

import json
import pathlib

from tests.cluster import objects

Document = objects.Document

_RESOURCES = {"cpu": "128", "memory": "1Ti", "pods": "110"}


class NodeGroup:
    """Files of the group ``boxes`` in a folder."""

    def __init__(self, folder: pathlib.Path, *, most: int) -> None:
        self.file = folder / "groups.yaml"
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "box"}, "status": {"allocatable": _RESOURCES}}
        spec = {"max": most, "labels": {"pool": "boxes"}, "template": {"objects": [node]}}
        head = {"apiVersion": "drachma.dev/v1", "kind": "NodeGroup", "metadata": {"name": "boxes"}}
        self.file.write_text(json.dumps({**head, "spec": spec}))
        self.command = folder / "node-provider"
        self._orders = folder / "orders"
        self._orders.touch()
        self.command.write_text(f'#!/bin/sh\necho "$@" >> {self._orders}\n')
        self.command.chmod(0o755)

    def orders(self) -> list[str]:
        """Return the arguments of all calls of the command."""
        return self._orders.read_text().splitlines()


def large_pod(name: str) -> Document:
    """Return a pod that fits only on a machine of the group, one on each."""
    pod = objects.pod(name)
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100"
    return pod


def machine(name: str, *, is_ready: bool) -> Document:
    """Return the node of a machine of the group."""
    node = objects.node(name)
    node["metadata"]["labels"] = {"pool": "boxes"}
    node["status"]["allocatable"] = node["status"]["capacity"] = _RESOURCES
    node["status"]["conditions"][0]["status"] = "True" if is_ready else "False"
    return node
