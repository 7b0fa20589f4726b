"""Kinds of ``autoscaling``: horizontal pod autoscalers, and scales."""
