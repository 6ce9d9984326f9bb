"""The rules for a request to repair or replace the jail. They refuse to keep folders of the image, because an overwrite without them would have no
effect.
"""

import re

from soperator.api.validation.cel import Rule, cel_list
from soperator.api.validation.submounts import CROOKED, RESERVED

#: Paths that an image contains, or above those: keeping one of them would replace nothing.
SYSTEM_PATHS = (
    "/",
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib64",
    "/opt",
    "/sbin",
    "/usr",
    "/var",
    "/var/lib",
    "/var/spool",
)

REFILL = (
    Rule(
        cel=f"!has(self.keep) || self.keep.all(path, !path.matches('{CROOKED}'))",
        message="keep must contain normalized paths: remove '//', '.', '..' and a '/' at the end",
        holds=lambda refill: not any(re.search(CROOKED, path) for path in refill.keep),
        field="keep",
    ),
    Rule(
        cel=f"!has(self.keep) || self.keep.all(path, !path.matches('{RESERVED}') && !(path in {cel_list(SYSTEM_PATHS)}))",
        message=(
            "keep must not contain folders of the image or mounts of a node (/usr, /etc, /var, /proc, /opt/soperator, "
            "…), because they must be replaced: name folders of users, for example /home, /srv/data or /usr/local/share"
        ),
        holds=lambda refill: not any(re.search(RESERVED, path) or path in SYSTEM_PATHS for path in refill.keep),
        field="keep",
    ),
)

ASKED = (
    Rule(
        cel="(self.populate == 'Once' && !self.perNode) || !has(self.refill) || self.refill.?request.orValue('') == ''",
        message=(
            "refill needs populate: Once and a shared root, because with Never the root file system is yours, and with "
            "perNode each node starts with the image: remove the request"
        ),
        holds=lambda jail: jail.has_job or not jail.refill.request,
        field="refill",
    ),
)
