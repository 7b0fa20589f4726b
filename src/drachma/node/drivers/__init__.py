"""DRA drivers that run as processes: registration, connections, and the streams that an agent reads from them."""
