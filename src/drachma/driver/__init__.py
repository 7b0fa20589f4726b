"""The SDK for drivers: publish devices, serve a node agent (drachma's or a real kubelet), prepare claims.

Written against :mod:`drachma.client` and :mod:`drachma.nodewire`: a driver made with it runs on any cluster.
"""
