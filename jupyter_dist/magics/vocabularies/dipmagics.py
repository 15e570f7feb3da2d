"""Ddip's magics. Cells run in the kernel unless %%dip or %autodip is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.core.magic import cell_magic, line_magic, magics_class

from jupyter_dist.client import Result
from jupyter_dist.client.blocking.report import devices_line, status_text
from jupyter_dist.client.results.display import show_live
from jupyter_dist.magics.base import RankMagics, call_app, use_app
from jupyter_dist.magics.failures import DistError, MagicParser, sentences
from jupyter_dist.protocol.models import ViewItem
from jupyter_dist.protocol.ranks import expand_ranks, format_ranks, parse_ranks


def makedip_parser() -> MagicParser:
    """Return the parser of `%makedip`."""
    parser = MagicParser("%makedip")
    parser.add_argument("-g", "--gpus", help="devices, or all")
    parser.add_argument("-n", "--num-ranks", type=int, help="number of ranks on CPU, if there is no device")
    parser.add_argument("-a", "--app", help="app that sets up a framework on all ranks: fastai, or an installed one")
    parser.add_argument("-r", "--restart", action="store_true", help="restart in new processes")
    parser.add_argument("-k", "--kill", action="store_true", help="end the group")
    parser.add_argument("-i", "--info", action="store_true", help="show the group")
    parser.add_argument("-v", "--verbose", nargs="?", const="True", choices=["True", "False"], help="for the app")
    parser.add_argument("-t", "--timeout", type=float, help="ignored: a start that fails reports it")
    return parser


def dip_parser() -> MagicParser:
    """Return the parser of `%%dip`."""
    parser = MagicParser("%%dip")
    parser.add_argument("where", nargs="?", choices=["remote", "local", "everywhere"], default="remote")
    parser.add_argument("-q", "--quiet", action="store_true")
    parser.add_argument("-S", "--see", nargs="+", default=["0"], help="ranks whose output to show, or all (0)")
    parser.add_argument("-a", "--appcmd", help="a function of the app to call on all ranks first")
    parser.add_argument("--keep-cache", action="store_true", help="do not empty the device cache afterwards")
    return parser


@magics_class
class DipMagics(RankMagics):
    """Cells on ranks, in the kernel, or on both."""

    @line_magic
    @sentences
    def makedip(self, line: str) -> None:
        """Start, show, restart or end this notebook's group."""
        options = makedip_parser().parse(line)
        if options.kill:
            group = self.session.group()
            print("\n".join([*group.shutdown(), f"Group '{group.name}' has ended."]))
            self.session.forget()
            self.auto.prefix = None
        elif options.restart:
            self.restart()
            self._use_app(options)
        elif options.info:
            group = self.session.group()
            print(status_text(group.status(), group.memory(), ""))
        else:
            group, started = self.start(None, {"num_processes": options.num_ranks, "gpu_ids": options.gpus})
            print(f"{'Started' if started else 'Attached to'} group '{group.name}' of {group.world_size} ranks.")
            print(devices_line(group.model))
            self._use_app(options)

    @cell_magic
    @sentences
    def dip(self, line: str, cell: str) -> None:
        """Run the cell on all ranks, in the kernel, or in the kernel and then on all ranks."""
        options = dip_parser().parse(line)
        if options.where in ("local", "everywhere"):
            self._run_here(cell)
        if options.where in ("remote", "everywhere"):
            if options.appcmd:
                call_app(self.session, options.appcmd)
            show = False if options.quiet else self._seen(" ".join(options.see))
            self.session.run(cell, show=show, empty_cache=not options.keep_cache)

    @line_magic
    @sentences
    def autodip(self, line: str) -> None:
        """[on|off]: whether cells run on the ranks by default; -a "--see all" adds arguments to their %%dip."""
        parser = MagicParser("%autodip")
        parser.add_argument("switch", nargs="?", choices=["on", "off"])
        parser.add_argument("-a", "--append", default="")
        options = parser.parse_args(_with_value(parser.split(line)))
        if options.switch == "on":
            self.session.group()
            self.auto.prefix = f"dip {options.append}".strip()
        elif options.switch == "off":
            self.auto.prefix = None
        print(f"Auto execution on ranks: {'off' if self.auto.prefix is None else f'%%{self.auto.prefix}'}")

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
    def dipull(self, line: str) -> None:
        """Copy variables of one rank to the kernel: %dipull [-r RANK] v1 v2."""
        parser = MagicParser("%dipull")
        parser.add_argument("-r", "--rank", type=int, default=0)
        parser.add_argument("names", nargs="+")
        options = parser.parse(line)
        wrong = [name for name in options.names if not name.isidentifier()]
        if wrong:
            raise DistError(f"'{wrong[0]}' is not a variable. For other values: %dipper group, then group.pull('...').")
        group = self.session.group()
        self.shell.push({name: group.pull(name, options.rank) for name in options.names})

    @line_magic
    @sentences
    def dipper(self, line: str) -> None:
        """Assign this notebook's group to a variable of the kernel: %dipper name."""
        if not line.strip().isidentifier():
            raise DistError("Under which name? %dipper group.")
        self.shell.push({line.strip(): self.session.group()})

    def _use_app(self, options: Any) -> None:
        if options.app is not None:
            app = (options.app, options.verbose == "True")
            use_app(self.session, *app)
            self.session.app = app
            print(f"App '{options.app}' is in use on all ranks.")

    def _run_here(self, cell: str) -> None:
        found = self.shell.run_cell(cell)
        error = found.error_before_exec or found.error_in_exec
        if error is not None:
            raise DistError(f"The cell failed in the kernel ({type(error).__name__}), so it was not run on the ranks.")

    def _seen(self, ranks: str) -> Callable[[Result], None]:
        """Show the output of those ranks, and errors of all ranks, because they fail the cell."""
        expression = "all" if ranks == "all" else ranks.replace(" ", ",")
        chosen = set(parse_ranks(expression, self.session.group().world_size))
        show = show_live()
        return lambda result: show(_only(result, chosen))


def _only(result: Result, ranks: set[int]) -> Result:
    items: list[ViewItem] = []
    for item in result.folded:
        seen = [rank for rank in expand_ranks(item["ranks"]) if rank in ranks]
        if item.get("output", {}).get("output_type") == "error":
            items.append(item)
        elif seen:
            items.append({**item, "ranks": format_ranks(seen)})
    return Result(result.group, result.execution, items)


def _with_value(arguments: list[str]) -> list[str]:
    """Join `-a "--see all"`, which argparse would take for two options."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in ("-a", "--append"):
            joined[-1] = f"--append={argument}"
        else:
            joined.append(argument)
    return joined
