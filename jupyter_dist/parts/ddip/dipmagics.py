"""Ddip's magics. Cells run in the kernel unless %%dip or %autodip is used."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from typing import Any

from IPython.core.magic import cell_magic, line_magic, magics_class

from jupyter_dist.client import Group, JupyterDistError, Result
from jupyter_dist.client.blocking.report import devices_line, sample_if_any, status_text
from jupyter_dist.client.displays.live import show_live
from jupyter_dist.magics.automode import AutoMode
from jupyter_dist.magics.base import RankMagics, joined, start_fields
from jupyter_dist.magics.failures import DistError, MagicParser, sentences, takes
from jupyter_dist.magics.session import Session
from jupyter_dist.protocol.models.models import ViewItem
from jupyter_dist.protocol.ranks import RankSet, ranks_in

from .appinuse import App, AppInUse
from .dipper import Dipper

# Ddip's was fastai_v1, on every group. Here it costs nothing in notebooks that do not import fastai.
DEFAULT_APP = App("fastai", when_imported=True)


def makedip_parser() -> MagicParser:
    """Return the parser of `%makedip`."""
    parser = MagicParser("%makedip")
    parser.add_argument("-g", "--gpus", nargs="+", help="devices, or all")
    parser.add_argument("-n", "--num-ranks", type=int, help="number of ranks on CPU, if there is no device")
    parser.add_argument("-a", "--app", help="app that sets up a framework on all ranks: fastai, or an installed one")
    parser.add_argument("-r", "--restart", action="store_true", help="new processes; with -g or -n of that number")
    parser.add_argument("-k", "--kill", action="store_true", help="end the group")
    parser.add_argument("-i", "--info", action="store_true", help="show the group, its app and %%autodip")
    parser.add_argument("-v", "--verbose", nargs="?", const="True", choices=["True", "False"], help="for the app")
    parser.add_argument("-t", "--timeout", type=float, help="ignored: a start that fails reports it")
    return parser


def dip_parser() -> MagicParser:
    """Return the parser of `%%dip`."""
    parser = MagicParser("%%dip")
    parser.add_argument("where", nargs="?", choices=["remote", "local", "everywhere"], default="remote")
    parser.add_argument("-q", "--quiet", action="store_true", help="show no output")
    parser.add_argument("-S", "--see", nargs="+", default=["0"], help="ranks whose output to show, or all (0)")
    parser.add_argument("-a", "--appcmd", help="a function of the app to call on all ranks first")
    parser.add_argument("--keep-cache", action="store_true", help="do not empty the device cache afterwards")
    return parser


def autodip_parser() -> MagicParser:
    """Return the parser of `%autodip`."""
    parser = MagicParser("%autodip")
    parser.add_argument("switch", nargs="?", choices=["on", "off"])
    parser.add_argument("-a", "--args", "--append", default="", help='arguments of their %%%%dip: "--see all"')
    return parser


def dipull_parser() -> MagicParser:
    """Return the parser of `%dipull`."""
    parser = MagicParser("%dipull")
    parser.add_argument("-r", "--rank", type=int, default=0)
    parser.add_argument("names", nargs="+")
    return parser


@magics_class
class DipMagics(RankMagics):
    """Cells on ranks, in the kernel, or on both."""

    def __init__(self, shell: Any, session: Session, auto: AutoMode) -> None:
        super().__init__(shell, session, auto)
        self.apps = AppInUse(session)
        session.followers.append(self.apps)

    @line_magic
    @sentences
    @takes(makedip_parser)
    def makedip(self, line: str) -> None:
        """Start, show, restart or end this notebook's group."""
        options = makedip_parser().parse(line)
        fields = {"num_processes": options.num_ranks, "gpu_ids": joined(options.gpus)}
        app = App(options.app, options.verbose == "True") if options.app else None
        if options.kill:
            self.end()
        elif options.info:
            print(self.info())
        elif options.restart:
            self.renew(fields, app)
        else:
            self.begin(fields, app)

    def begin(self, fields: dict[str, Any], app: App | None) -> None:
        """Start the group, or attach to it, and set up the app."""
        group, started = self.start(None, fields)
        ranks = "1 rank" if group.world_size == 1 else f"{group.world_size} ranks"
        print(f"{'Started' if started else 'Attached to'} group '{group.name}' of {ranks}.")
        print(devices_line(group.model))
        if started:
            self.print_ending(group)
        app = app or (DEFAULT_APP if started else None)
        if app is not None:
            self.apps.use(app)
            if not app.when_imported:
                print(f"App '{app.name}' is in use on all ranks.")

    def renew(self, fields: dict[str, Any], app: App | None) -> None:
        """Restart all ranks; start the group if there is none, or again if it is to have other ranks."""
        try:
            group = self.session.group()
        except JupyterDistError as err:
            if err.code != "unknown_group":
                raise
            self.begin(fields, app)
            return
        app = app or self.apps.known(group)
        if group.model["state"] == "lost" or not self._fits(group, fields):
            self.end_group(group)
            self.begin(fields if any(fields.values()) else _fields_of(group), app)
            return
        self.apps.next = app
        self.restart()

    def info(self) -> str:
        """Return the state of the group, its app, and where cells run."""
        try:
            group = self.session.group()
        except JupyterDistError as err:
            if err.code != "unknown_group":
                raise
            return f"{err}\n{self._auto_state()}"
        app = self.apps.known(group)
        when = " (once a cell has imported it)" if app is not None and app.when_imported else ""
        lines = [
            status_text(group.status().model, sample_if_any(group), ""),
            f"App: {app.name if app else 'none'}{when}",
        ]
        return "\n".join([*lines, self._auto_state()])

    @cell_magic
    @sentences
    @takes(dip_parser)
    def dip(self, line: str, cell: str) -> None:
        """Run the cell on all ranks, in the kernel, or in the kernel and then on all ranks."""
        options = dip_parser().parse(line)
        if options.where in ("local", "everywhere"):
            self._run_here(cell, options.quiet, options.where)
        if options.where in ("remote", "everywhere"):
            if options.appcmd:
                self.apps.call(f"call({options.appcmd!r})")
            show = False if options.quiet else self.seen(options.see)
            self.session.run(cell, show=show, empty_cache=not options.keep_cache)

    @line_magic
    @sentences
    @takes(autodip_parser)
    def autodip(self, line: str) -> None:
        """[on|off]: whether cells run on the ranks by default; -a "--see all" adds arguments to their %%dip."""
        parser = autodip_parser()
        options = parser.parse_args(_with_value(parser.split(line)))
        if options.switch == "on":
            self.session.group()
            self.auto.prefix = f"dip {options.args}".strip()
        elif options.switch == "off":
            self.auto.prefix = None
        print(self._auto_state())

    @line_magic
    @sentences
    def dipush(self, line: str) -> None:
        """Copy variables of the kernel to all ranks: %dipush v1 v2."""
        names = line.replace(",", " ").split()
        missing = [name for name in names if name not in self.shell.user_ns]
        if missing or not names:
            raise DistError(f"The kernel has no '{missing[0]}'." if missing else "Which variables? %dipush v1 v2.")
        self.session.group().push({name: self.shell.user_ns[name] for name in names})

    @line_magic
    @sentences
    @takes(dipull_parser)
    def dipull(self, line: str) -> None:
        """Copy variables of one rank to the kernel."""
        options = dipull_parser().parse(line)
        wrong = [name for name in options.names if not name.isidentifier() or keyword.iskeyword(name)]
        if wrong:
            raise DistError(f"'{wrong[0]}' is not a variable. For other values: %dipper group, then group.pull('...').")
        group = self.session.group()
        self.shell.push({name: group.pull(name, options.rank) for name in options.names})

    @line_magic
    @sentences
    def dipper(self, line: str) -> None:
        """Assign this notebook's group to a variable of the kernel, with the methods of Ddip's controller."""
        if not line.strip().isidentifier() or keyword.iskeyword(line.strip()):
            raise DistError("Under which name? %dipper group.")
        self.session.group()
        self.shell.push({line.strip(): Dipper(self)})

    def _auto_state(self) -> str:
        return f"Auto execution on ranks: {'off' if self.auto.prefix is None else f'%%{self.auto.prefix}'}"

    def _fits(self, group: Group, fields: dict[str, Any]) -> bool:
        """Whether a restart of this group's ranks gives the group that is wanted."""
        wanted = start_fields(fields)
        if "devices" in wanted and self._has_no_devices(wanted):
            devices = wanted.pop("devices")
            wanted = {**({"num_ranks": len(devices)} if isinstance(devices, list) else {}), **wanted}
        return self.session.is_same(group, wanted)

    def _run_here(self, cell: str, quiet: bool, where: str) -> None:
        with self.auto.suspended():
            found = self.shell.run_cell(cell, silent=quiet)
        error = found.error_before_exec or found.error_in_exec
        if error is not None:
            also = ", so it was not run on the ranks" if where == "everywhere" else ""
            raise DistError(f"The cell failed in the kernel ({type(error).__name__}){also}.")

    def seen(self, ranks: Iterable[str]) -> Callable[[Result], None]:
        """Show the output of those ranks, and errors of all ranks, because they fail the cell."""
        expression = self.existing(",".join(ranks))
        group = self.session.group()
        chosen = set(ranks_in(group.model, expression)) if expression else set()
        show = show_live()
        return lambda result: show(_only(result, chosen))


def _fields_of(group: Group) -> dict[str, Any]:
    """Return the options of a start of such a group."""
    devices = ",".join(map(str, group.model["devices"]))
    return {"num_processes": None if devices else group.world_size, "gpu_ids": devices or None}


def _only(result: Result, ranks: set[int]) -> Result:
    items: list[ViewItem] = []
    for item in result.folded:
        seen = [rank for rank in RankSet.from_text(item["ranks"]) if rank in ranks]
        if item.get("output", {}).get("output_type") == "error":
            items.append(item)
        elif seen:
            items.append({**item, "ranks": str(RankSet(seen))})
    return Result(result.group, result.execution, items)


def _with_value(arguments: list[str]) -> list[str]:
    """Join `-a "--see all"`, which argparse would take for two options."""
    found: list[str] = []
    for argument in arguments:
        if found and found[-1] in ("-a", "--args", "--append"):
            found[-1] = f"--args={argument}"
        else:
            found.append(argument)
    return found
