"""Parts that objects of all roles share, so that they agree: names, labels, pods, capabilities."""
