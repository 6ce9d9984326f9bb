"""The version of the renderer.

A newer operator that renders an unchanged spec differently must not restart anything (`policy/cluster/render_record`). So each pass records
the version of its renderer, and a difference under another version waits until the spec changes or an upgrade is requested. The number says
that rendered objects changed. Renamed modules and comments do not change it.
"""

#: `make golden` raises it when a golden object changes (`tests/golden/VERSION`). Raise it by hand for a change that no golden object shows.
VERSION = 13
