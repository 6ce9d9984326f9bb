"""The kinds: one module for each, what they share, and what a schema cannot say."""
