"""The kinds of ``kueue.x-k8s.io``: partial views of v1beta2."""
