"""The operator's caches: informers, and values that are derived from them once for all passes."""
