"""Request bodies: from bytes in JSON, YAML or protobuf to documents, and what upstream says about bad ones."""
