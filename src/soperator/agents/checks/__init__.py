"""The runner of quick checks on a worker. It imports only those modules of the standard library that Debian's python3-minimal has."""
