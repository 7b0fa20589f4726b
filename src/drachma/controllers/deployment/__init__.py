"""Deployments: ReplicaSets, one a template, between which pods move step by step."""

from drachma.controllers.deployment.deploymentcontroller import DeploymentController

__all__ = ["DeploymentController"]
