"""The kinds of the API: one module for each, shared parts, and rules that a schema cannot express. The CRDs and the reference pages are generated
from here.
"""
