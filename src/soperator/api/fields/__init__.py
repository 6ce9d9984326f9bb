"""Parts of the kinds: groups of related fields of a spec, one module for each."""
