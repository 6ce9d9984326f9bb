"""Parts that objects of all roles share: names, labels, pods, capabilities."""
