"""Topology aware scheduling: places the pods of a workload close together. Pure.

A flavor with a topology has a :class:`~drachma.queueing.topology.tree.Tree` of its nodes. :mod:`placement` finds the
domains of that tree for the pod sets of a workload, in Kueue's order and with Kueue's messages.
"""
