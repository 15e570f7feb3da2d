"""What `%dipper` gives: this notebook's group with the methods of Ddip's controller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from jupyter_dist.client import Group, Result
from jupyter_dist.magics.session import Session
from jupyter_dist.protocol.ranks import RankSet

from .appinuse import App, AppInUse


class DipCommands(Protocol):
    """The commands of Ddip's magics that Dipper calls."""

    session: Session
    apps: AppInUse

    def info(self) -> str:
        """Return the text of `%makedip -i`."""

    def seen(self, ranks: Iterable[str]) -> Callable[[Result], None]:
        """Return a function that shows the output of these ranks."""

    def begin(self, fields: dict[str, Any], app: App | None) -> None:
        """Start a group with these fields of StartRequest, and an app on it."""

    def end(self) -> None:
        """End the group."""


class Dipper:
    """The group of this notebook, looked up at each call. Other attributes come from `Group`.

    Ddip's methods name ranks by their GPUs; on CPU these are the numbers of the ranks.
    """

    def __init__(self, magics: DipCommands) -> None:
        self._magics = magics

    @property
    def group(self) -> Group:
        """Return the group."""
        return self._magics.session.group()

    @property
    def ddp_group(self) -> list[int]:
        """Return the GPU of each rank; the ranks on CPU."""
        group = self.group
        return list(group.model["devices"]) or list(range(group.world_size))

    def gpus_str(self) -> str:
        """Return `ddp_group` as text."""
        return ",".join(map(str, self.ddp_group))

    def info(self) -> str:
        """Return the output of `%makedip -i`."""
        return self._magics.info()

    def meminfo(self) -> dict[int, list[int]] | None:
        """Return the reserved and the allocated bytes of each rank's device; None on CPU."""
        if not self.group.model["devices"]:
            return None
        ranks = self.group.memory().ranks
        return {rank.rank: [rank.reserved_bytes or 0, rank.allocated_bytes or 0] for rank in ranks}

    def push(self, push_dict: Mapping[str, Any], gpus: Iterable[int] | None = None, ranks: str = "all") -> None:
        """Set variables on ranks."""
        self.group.push(push_dict, ranks if gpus is None else self._ranks(gpus))

    def pull(self, names: str | Iterable[str], rank: int = 0) -> Any:
        """Return the variables of one rank by name; of one name its value."""
        if isinstance(names, str):
            return self.group.pull(names, rank)
        return {name: self.group.pull(name, rank) for name in names}

    def run_cell(
        self, cell: str, gpus: Iterable[int] | None = None, quiet: bool = False, see: Iterable[int] | None = None
    ) -> None:
        """Run a cell on ranks as `%%dip` does: with the output of the ranks `see`, by default rank 0.

        Raises:
            RankError: if a rank failed.
        """
        show = False if quiet else self._magics.seen(map(str, [0] if see is None else see))
        self._magics.session.run(cell, "all" if gpus is None else self._ranks(gpus), show=show, empty_cache=True)

    def new_group(self, gpus: Iterable[int], appname: str | None = None, **_: Any) -> None:
        """End the group and start one on these GPUs; on CPU with as many ranks."""
        self._magics.end()
        self._magics.begin({"gpu_ids": ",".join(map(str, gpus))}, App(appname) if appname else None)

    def exit_group(self) -> None:
        """End the group."""
        self._magics.end()

    def app_init(self, appname: str) -> None:
        """Set up an app on all ranks."""
        self._magics.apps.use(App(appname))

    def app_exit(self) -> None:
        """End the app in use."""
        self._magics.apps.call("leave()")
        self._magics.apps.app = None

    def app_run_cmd(self, cmd: str) -> None:
        """Call a function of the app on all ranks."""
        self._magics.apps.call(f"call({cmd!r})")

    def set_verbose(self, verbose: bool) -> None:
        """Set whether the app prints its actions."""
        self._magics.apps.call(f"set_verbose({verbose!r})")

    def _ranks(self, gpus: Iterable[int]) -> str:
        places = self.ddp_group
        return str(RankSet(places.index(gpu) if gpu in places else gpu for gpu in gpus))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what copy and IPython look for
            raise AttributeError(name)
        return getattr(self.group, name)

    def __repr__(self) -> str:
        return repr(self.group)
