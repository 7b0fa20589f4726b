"""Pods and containers on a node: their workers, states and resources."""
