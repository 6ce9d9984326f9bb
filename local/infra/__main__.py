"""`python3 -m local.infra`: build OpenTofu and a Helm provider for `make test-infra`."""

import sys

from local import infra
from local.progress import Failure

try:
    print(*infra.build(), sep="\n")
except Failure as failure:
    sys.exit(str(failure))
