"""The support archive of a cluster: what is collected, and how every byte of a Secret is kept out of it."""
