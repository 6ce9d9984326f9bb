"""The verb import."""
