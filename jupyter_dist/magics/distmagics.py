"""nbdistributed's magics: a notebook written for it only has to change its %load_ext line."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import cell_magic, line_magic, magics_class

from jupyter_dist.client.blocking.report import (
    debug_text,
    devices_line,
    sample_if_any,
    status_text,
)
from jupyter_dist.client.startoptions import (
    OPTIONS,
    add_replace_options,
    add_replace_state,
    add_start_options,
    given_replace_options,
    word_of,
)
from jupyter_dist.magics.automode import AutoMode
from jupyter_dist.magics.base import RankMagics, joined, start_fields
from jupyter_dist.magics.completion import RankNames
from jupyter_dist.magics.failures import DistError, MagicParser, no_arguments, sentences, takes
from jupyter_dist.magics.session import COMPARED, Session

LOCAL_ADDRESSES = ("localhost", "127.0.0.1", "::1")
DEFAULT_RANKS = 2
AUTO_PREFIX = "distributed"
HERE = {"python": "interpreter of the ranks (default: this kernel's)", "cwd": "of the ranks (default: this kernel's)"}
VARIABLES = "torch, dist, rank, local_rank, world_size, device, gpu_id"


def init_parser() -> MagicParser:
    """Return the parser of `%dist_init`."""
    parser = MagicParser("%dist_init", description="Start this notebook's group, or attach to it if it is running.")
    parser.add_argument("number", nargs="?", type=int, help="the same as -n")
    parser.add_argument("-n", "--num-processes", "--num-ranks", type=int, help="number of ranks (default: 2)")
    parser.add_argument("-a", "--master-addr", default="localhost", help="ignored: the server's machine")
    parser.add_argument("-g", "--gpu-ids", "--devices", nargs="+", help="devices: 0,1,3")
    parser.add_argument("-t", "--timeout", help="ignored: there is no time limit")
    parser.add_argument("--name", help="name of the group (default: the notebook's name)")
    add_start_options(parser, [name for name in OPTIONS if name not in ("num_ranks", "devices")], texts=HERE)
    return parser


def mode_parser() -> MagicParser:
    """Return the parser of `%dist_mode`."""
    parser = MagicParser("%dist_mode")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("-e", "--enable", action="store_true")
    choice.add_argument("-d", "--disable", action="store_true")
    return parser


def shutdown_parser() -> MagicParser:
    """Return the parser of `%dist_shutdown`."""
    parser = MagicParser("%dist_shutdown")
    parser.add_argument("--force", action="store_true", help="ignored: processes that do not end are always killed")
    return parser


def reset_parser() -> MagicParser:
    """Return the parser of `%dist_reset`."""
    parser = MagicParser("%dist_reset")
    parser.add_argument("number", nargs="?", type=int, help="the same as -n")
    parser.add_argument("-n", "--nuclear", action="store_true", help="ignored: other processes are never ended here")
    return parser


def restart_parser() -> MagicParser:
    """Return the parser of `%dist_restart`."""
    parser = MagicParser("%dist_restart")
    parser.add_argument("-d", "--dead", action="store_true", help="only dead ranks; the others keep their variables")
    add_replace_state(parser, "with -d: what new ranks begin with")
    add_replace_options(parser)
    parser.add_argument("--all-names", action="store_true", help="with --state copy: also names that ranks differ in")
    return parser


@magics_class
class DistMagics(RankMagics):
    """Cells on ranks."""

    after_init = "Cells now run on all ranks; %dist_mode -d runs them in the kernel, %%rank [0,2] selects ranks."

    def __init__(self, shell: Any, session: Session, auto: AutoMode, names: RankNames) -> None:
        super().__init__(shell, session, auto)
        self._names = names

    @line_magic
    @sentences
    @takes(init_parser)
    def dist_init(self, line: str) -> None:
        """Start this notebook's group, or attach to it if it is running; from now on cells run on its ranks."""
        options = init_parser().parse(line)
        if options.master_addr not in LOCAL_ADDRESSES:
            raise DistError(
                f"Ranks meet on the server's machine or on node 0, not on '{options.master_addr}'. Omit -a."
            )
        if options.num_processes is None:
            options.num_processes = options.number
        wanted = {**vars(options), "gpu_ids": joined(options.gpu_ids)}
        group, started = self.start(options.name, wanted, DEFAULT_RANKS)
        self.auto.prefix = AUTO_PREFIX
        if join := group.model.get("join"):
            print(f"Group '{group.name}' starts when its machines have joined. Run this on each of them:\n  {join}")
        elif started:
            print(f"Group '{group.name}': {group.world_size} ranks ready after {group.model['ready_seconds']:.1f} s.")
            self.print_ending(group)
            print(f"Every rank has {VARIABLES}.")
        else:
            print(f"Attached to group '{group.name}' with {group.world_size} ranks; they keep their variables.")
            without_effect = [word_of(name) for name in start_fields(wanted) if name not in COMPARED]
            if without_effect:
                print(f"Only a start takes {', '.join(without_effect)}: this group is as it was started.")
        print(devices_line(group.model))
        if group.model["state"] != "ready":
            print(status_text(group.status().model, None, ""))
        print(self.after_init)

    @cell_magic
    @sentences
    def distributed(self, line: str, cell: str) -> None:
        """Run the cell on all ranks."""
        if line.strip():
            raise DistError(f"%%distributed takes no arguments; to choose ranks: %%rank {line.strip()}")
        self.session.run(cell)

    @cell_magic
    @sentences
    def rank(self, line: str, cell: str) -> None:
        """Run the cell on some ranks: %%rank [0,2], 0-3, ::2, !0, -1, node:0, nd1, all."""
        ranks = line.strip().strip("\"'")
        if not ranks:
            raise DistError("Which ranks? %%rank [0,2], %%rank 0-3, %%rank ::2 or %%rank !0.")
        self.session.run(cell, self.existing(ranks) or ranks)

    @line_magic
    @sentences
    def sync(self, line: str) -> None:
        """Wait until all ranks have reached this point."""
        no_arguments("%sync", line)
        if self.group_if_any() is None:
            return
        result = self.session.run("dist.barrier()", show=False, silent=True)
        seconds = max(part.seconds or 0.0 for _, part in result.items())
        print(f"All {len(result)} ranks are in sync ({seconds:.2f} s).")

    @line_magic
    @sentences
    def dist_status(self, line: str) -> None:
        """Print each rank's state, process, device and memory."""
        no_arguments("%dist_status", line)
        group = self.group_if_any()
        if group is None:
            return
        model = group.status().model
        # Only for GPUs, because their driver is slow.
        devices = group.client.ask("GET", "devices")["devices"] if model["devices"] else ()
        print(status_text(model, sample_if_any(group), self.mode(), devices))

    @line_magic
    @sentences
    @takes(mode_parser)
    def dist_mode(self, line: str) -> None:
        """-e: cells run on all ranks; -d: cells run in the kernel; without either: print the mode."""
        options = mode_parser().parse(line)
        if options.enable:
            self.session.group()  # report a missing group now, not in every following cell
            self.auto.prefix = AUTO_PREFIX
        elif options.disable:
            self.auto.prefix = None
        print(self.mode())

    @line_magic
    @sentences
    @takes(shutdown_parser)
    def dist_shutdown(self, line: str) -> None:
        """End the group and all of its processes."""
        shutdown_parser().parse(line)
        self.end()

    @line_magic
    @sentences
    @takes(reset_parser)
    def dist_reset(self, line: str) -> None:
        """End the group and all of its processes, as %dist_shutdown does; %dist_init then starts a new one."""
        reset_parser().parse(line)
        self.end()

    @line_magic
    @sentences
    @takes(restart_parser)
    def dist_restart(self, line: str) -> None:
        """Restart all ranks of this notebook's group in new processes, or with -d only the dead ones."""
        options = restart_parser().parse(line)
        if options.dead:
            others = "copy" if options.all_names else "leave"
            self.replace(options.state, others=others, **given_replace_options(options))
        elif options.state != "empty":
            raise DistError("Only dead ranks can be given variables: %dist_restart -d. A restore gives them to all.")
        else:
            self.restart()

    @line_magic
    @sentences
    def dist_debug(self, line: str) -> None:
        """Print the server, the group and its processes."""
        no_arguments("%dist_debug", line)
        client = self.session.client
        print(debug_text(client, client.groups(), self.mode()))

    @line_magic
    @sentences
    def dist_sync_ide(self, line: str) -> None:
        """Fetch the variables of rank 0, so that completion has them even while it cannot answer."""
        no_arguments("%dist_sync_ide", line)
        group = self.group_if_any()
        if group is None:
            return
        names = [name for name in self._names.refresh(group) if not name.startswith("_")]
        number = f"{len(names)} name{'s' * (len(names) != 1)}"
        known = f"{number} of rank 0: {', '.join(names)}" if names else "no names of rank 0"
        print(f"Completion knows {known}. The kernel's variables are unchanged.")
