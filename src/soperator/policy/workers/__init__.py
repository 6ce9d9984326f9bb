"""The policy for a NodeSet's workers; `policy` is its entry."""
