"""What a node serves over HTTPS at the kubelet's paths, to those who may have it: logs, commands, ports, figures."""
