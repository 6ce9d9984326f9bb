"""Keeps a valid token for slurmrestd in a file, for a container that may have a token but not the key.

The owner of the key can act as any user of Slurm, including root. This process has the key, reads nothing else and does not listen on the network. It
reads the key each time, so that after a rotation the next token is signed with the new key.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

from soperator.slurmrest.token import sign

#: Seconds for which a token is valid, and seconds until it is renewed.
LIFETIME, PERIOD = 600, 20.0
#: Seconds by which a token is valid before its creation, since clocks of Nodes differ.
_EARLIER = 30


def write(key: Path, user: str, to: Path, now: float) -> None:
    """Write a new token of the user to the file; raises OSError."""
    token = sign(key.read_bytes(), user, int(now) - _EARLIER, LIFETIME + _EARLIER)
    new = to.with_name(f".{to.name}.new")
    new.write_text(f"{token}\n")
    new.chmod(0o444)
    new.rename(to)


def keep(key: Path, user: str, to: Path) -> None:
    """Renew the token for ever; log each new fault once."""
    said = ""
    while True:
        try:
            write(key, user, to, time.time())
            said = ""
        except OSError as error:
            if str(error) != said:
                print(f"soperator: cannot create a token: {error}", file=sys.stderr, flush=True)
            said = str(error)
        time.sleep(PERIOD)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python3 -m soperator.agents.tokens", description=__doc__)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--to", type=Path, required=True)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    keep(chosen.key, chosen.user, chosen.to)


if __name__ == "__main__":
    main()
