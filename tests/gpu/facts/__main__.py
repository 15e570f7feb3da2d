"""What torch, NCCL and the driver really do where jupyter_dist relies on them: experiments without jupyter_dist.

    python -m facts [--dry] [--out FILE] [--seconds N] [NAME ...]        README.md says how to read the results

Two ranks share one device if there is only one: NCCL refuses that for ranks of one host, so each gets an NCCL_HOSTID.
"""

import sys

from kit import lab
from kit.ranks import import_torch

from . import devices, hangs, parking

__all__ = ["devices", "hangs", "parking"]

sys.exit(lab.main("facts", import_torch))
