"""One file per kind: gather, decide or render, apply, status. What depends on the domain is decided in `policy` and `render`."""
