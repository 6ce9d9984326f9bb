"""The policy over a NodeSet's workers; `policy` is the whole of it."""
