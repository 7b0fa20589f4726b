"""The dashboard: pages about devices, pods, claims and queues of a cluster, for people who look rather than read.

Every read is made with the credentials of the user who looks, so the API server decides what each user sees.
``serving.running`` serves it; :mod:`drachma.web.settings` says how.
"""

from drachma.web.settings import ProxyTrust, Settings

__all__ = ["ProxyTrust", "Settings"]
