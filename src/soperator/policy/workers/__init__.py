"""The policy for a NodeSet's workers; `policy` is its entry. The other modules have one question each, so that a reader can check each alone."""
