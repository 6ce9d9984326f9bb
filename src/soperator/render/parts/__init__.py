"""Pieces that objects of all roles are made of: names, labels, pods, capabilities."""
