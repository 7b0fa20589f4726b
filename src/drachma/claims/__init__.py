"""What claims mean to everybody: which claims a pod has, whose they are, who uses them, which devices, which taints.

Pure rules over API objects. Allocator, validation, server, controllers, scheduler and whoever comes after them ask
here, so that a rule that two of them need is written once. No clock, no chance, nothing that waits.
"""
