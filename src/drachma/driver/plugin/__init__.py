"""Driver as node agents see it: two sockets, and the services on them.

============= ==========================================================================
socketnames   what sockets are called, also where two instances run side by side
serialization one call at a time, among the instances of a driver too
contract      what a driver does when it is called, without any gRPC
calls         from gRPC messages to that and back: claims are fetched and checked here
server        the sockets: started, registered, stopped
============= ==========================================================================

Behaviour and messages are those of upstream's kubeletplugin helper.
"""
