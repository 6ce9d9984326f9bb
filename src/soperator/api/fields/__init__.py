"""Parts of the kinds: groups of related fields of a spec, one module for each topic, because a kind in one file would be too long to read."""
