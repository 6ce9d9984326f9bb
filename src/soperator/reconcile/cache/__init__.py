"""The operator's caches: informers, and values that are computed from them once for all passes."""
