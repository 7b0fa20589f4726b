"""``flowcontrol.apiserver.k8s.io``: which requests go before others, as objects."""
