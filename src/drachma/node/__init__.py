"""The node agent: the kubelet's part in running pods and preparing their claims."""
