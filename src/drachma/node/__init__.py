"""The node agent: what the kubelet does for pods with claims, and for pods at all."""
