"""Parts of the kinds: what several fields of a spec say together, one module for each."""
