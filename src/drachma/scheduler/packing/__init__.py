"""Packing: ratings of machines for tasks by CPU and GPUs, in plain numbers.

The scheduler's plugin PackingPolicy and the experiments of ``drachma.simulate.packing`` use the same policies.
"""
