"""Studies that measure ambar against its peers: `ambar bench ramses`."""
