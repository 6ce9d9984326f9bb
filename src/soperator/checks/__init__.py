"""Quick checks of a worker: what they are (data), how a measurement is judged, what is remembered and what is reported. All of it pure.

It runs on workers too, where there is only the small part of Python's library that Debian calls minimal: `catalog` alone needs more.
"""
