"""The deployment controller: one ReplicaSet per template, and pods that move between them step by step."""

from drachma.controllers.deployment.deploymentcontroller import DeploymentController

__all__ = ["DeploymentController"]
