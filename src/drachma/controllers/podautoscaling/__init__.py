"""Horizontal pod autoscaling: replicas of workloads that follow the resource usage of their pods."""

from drachma.controllers.podautoscaling.autoscalercontroller import HorizontalPodAutoscaling

__all__ = ["HorizontalPodAutoscaling"]
