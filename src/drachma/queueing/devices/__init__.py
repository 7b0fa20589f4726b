"""What workloads are charged with for devices (KEP-2941), and what was agreed about them."""
