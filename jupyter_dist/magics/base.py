"""The base of our magics classes, and what their options mean."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from IPython.core.magic import Magics

from jupyter_dist.client import Group, JupyterDistError
from jupyter_dist.client.answers.keywords import ReplaceState
from jupyter_dist.client.blocking.report import ending_text, replaced_text
from jupyter_dist.client.bundles.bundle import rank_label
from jupyter_dist.client.startoptions import given_options
from jupyter_dist.protocol.accelerators import ACCELERATORS, CPU, labels
from jupyter_dist.protocol.ranks import RankSet, existing_ranks

from .automode import AutoMode
from .failures import DistError
from .session import GRACE_VARIABLE, Session


class RankMagics(Magics):
    """Magics of one kernel: its shell, its group, and where its cells run by default."""

    after_end = "Cells run in the kernel."  # once the group is shut down

    def __init__(self, shell: Any, session: Session, auto: AutoMode) -> None:
        super().__init__(shell)
        self.session = session
        self.auto = auto

    def group_if_any(self) -> Group | None:
        """Return this notebook's group; without one, print what to do, because nothing is wrong."""
        try:
            return self.session.group()
        except JupyterDistError as err:
            if err.code != "unknown_group":
                raise
            print(err)
            return None

    def start(self, name: str | None, options: dict[str, Any], num_ranks: int | None = None) -> tuple[Group, bool]:
        """Attach to the group, or start it with these options; return whether it was started. See Session.init.

        Raises:
            DistError: with the names of the given options.
        """
        fields = start_fields(options)
        if "devices" in fields and self._has_no_devices(fields):
            devices = fields.pop("devices")
            print(f"-g {options['gpu_ids']} is ignored: this machine has no {labels()} device. The ranks run on CPU.")
            num_ranks = len(devices) if isinstance(devices, list) else num_ranks
        try:
            return self.session.init(name, fields, num_ranks)
        except JupyterDistError as err:
            words = {"The field 'num_ranks'": "-n", "'num_ranks'": "-n", "'devices'": f"-g {options.get('gpu_ids')}"}
            message = str(err)
            for field, option in words.items():
                message = message.replace(field, option)
            raise DistError(message) from None

    def _has_no_devices(self, fields: dict[str, Any]) -> bool:
        """Whether this is a machine on which a notebook for GPUs is rehearsed."""
        if fields.get("accelerator") not in (None, "auto", CPU.name):
            return False
        devices = self.session.client.ask("GET", "devices")["devices"]
        return not any(ACCELERATORS[device["accelerator"]].has_devices for device in devices)

    def print_ending(self, group: Group) -> None:
        """Print when a new group ends with this kernel, and how to keep it."""
        if group.model.get("ends_with"):
            print(f"{ending_text(group.model, is_private=False)} {GRACE_VARIABLE}=keep keeps it.")

    def restart(self) -> None:
        """Restart all ranks in new processes, set up as before, and print it."""
        group = self.session.group()
        if group.model["state"] == "lost":
            raise DistError(f"The agent of group '{group.name}' is gone. Start again: %dist_shutdown, then %dist_init.")
        for follower in self.session.followers:
            follower.before_restart(group)
        group.restart()
        print(f"Group '{group.name}': {group.world_size} new ranks.")
        self._follow_new("all")

    def replace(self, state: ReplaceState = "empty", **options: Any) -> None:
        """Start new processes for dead ranks, set up as before; the others keep theirs."""
        group = self.session.group()
        dead = str(RankSet(rank.rank for rank in group.status().ranks if rank.state == "dead"))
        group.replace(state, **options)
        print(f"Group '{group.name}': {rank_label(dead)} replaced; the other ranks keep their variables.")
        if state == "empty":
            self._follow_new(dead)
        else:
            print(replaced_text(group.model))

    def _follow_new(self, ranks: str) -> None:
        for follower in self.session.followers:
            follower.new_ranks(ranks)

    def end(self) -> None:
        """End the group and all of its processes, if there is one, and print it; cells run in the kernel."""
        group = self.group_if_any()
        self.auto.prefix = None
        if group is not None:
            self.end_group(group)
            print(self.after_end)

    def end_group(self, group: Group) -> None:
        """End the group, and print it."""
        print("\n".join([*group.shutdown(), f"Group '{group.name}' has ended."]))
        self.session.forget()

    def existing(self, ranks: str) -> str:
        """Leave out ranks that this group does not have, and print which: the notebook may be written for more ranks.

        Returns nothing if it has none of them.
        """
        group = self.session.group()
        kept, missing = existing_ranks(ranks, group.world_size)
        if missing:
            print(f"There is no {rank_label(missing)}: group '{group.name}' has {group.world_size} ranks.")
        return kept

    def mode(self) -> str:
        """Return a sentence about where cells run."""
        if self.auto.prefix is None:
            return "Cells run in the kernel; %dist_mode -e sends them to the ranks."
        return f"Cells run on the ranks (%%{self.auto.prefix}); %dist_mode -d makes them local."


def start_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a start for the given options of a magic."""
    fields = {"num_ranks": options.get("num_processes"), **given_options(argparse.Namespace(**options))}
    if options.get("gpu_ids"):
        fields["devices"] = parse_devices(options["gpu_ids"])
    return {name: value for name, value in fields.items() if value is not None}


def joined(values: Iterable[str] | None) -> str | None:
    """Join the values of an option: `-g 0 1` is `-g 0,1`."""
    return ",".join(value.strip(",") for value in values) if values else None


def parse_devices(text: str) -> list[int] | str:
    """Parse `0,1,3`, `[0, 1]` or `all`; removes duplicates and keeps the order."""
    inner = text.strip().strip("[]")
    if inner in ("all", "-1"):
        return "all"
    try:
        return list(dict.fromkeys(int(part) for part in inner.replace(",", " ").split()))
    except ValueError:
        raise DistError(f"'{text}' is not a list of devices. Write 0,1,3 or all.") from None
