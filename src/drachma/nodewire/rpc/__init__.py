"""gRPC between the node agent and its drivers, on unix sockets: messages, services, how they are called and served."""
