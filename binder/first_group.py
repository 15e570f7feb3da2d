"""Start a group on the Jupyter server of this machine, once it answers: `first_group.py NAME NUM_RANKS`."""

import sys
import time

from jupyter_dist.client import Client, JupyterDistError

PATIENCE_SECONDS = 120.0


def main(name: str, num_ranks: int) -> int:
    """Try until the server answers; 0 when the group is there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with Client.connect(private=False) as client:
                if name not in [group.name for group in client.groups()]:
                    client.start(name, num_ranks=num_ranks)
                return 0
        except JupyterDistError as err:
            if time.monotonic() > deadline:
                sys.stderr.write(f"No group was started: {err}\n")
                return 1
            time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
