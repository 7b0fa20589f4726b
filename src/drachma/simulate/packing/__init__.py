"""GPU packing experiments: tasks arrive one by one on a cluster of GPU machines, and policies choose their places.

The model is that of "Beware of Fragmentation" (USENIX ATC 2023): a task takes CPU, memory, and either a part of one GPU
or several whole GPUs of one machine. Nothing leaves. A policy is good if most GPUs are allocated at the end.
"""
