"""The runner of quick checks on a worker. It imports nothing but the standard library, of that only what Debian's python3-minimal has."""
