"""The kubelet's HTTPS endpoint of nodes: logs, commands, port forwarding and statistics, with authorisation."""
