"""The runner of quick checks on a worker. It imports only modules that Debian's python3-minimal has, so that the image stays small."""
