"""The base of our magics classes, and what their options mean."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics

from jupyter_dist.client import Group, JupyterDistError, RankError
from jupyter_dist.client.results.bundle import rank_label
from jupyter_dist.protocol.ranks import format_ranks

from .automode import AutoMode
from .failures import DistError
from .session import Session

# Evaluated on ranks; the apps themselves are never imported here.
APPS = '__import__("jupyter_dist.apps.registry", fromlist=["registry"]).apps'


class RankMagics(Magics):
    """Magics of one kernel: its shell, its group, and where its cells run by default."""

    def __init__(self, shell: Any, session: Session, auto: AutoMode) -> None:
        super().__init__(shell)
        self.session = session
        self.auto = auto

    def start(self, name: str | None, options: dict[str, Any], num_ranks: int | None = None) -> tuple[Group, bool]:
        """Attach to the group, or start it with these options; return whether it was started. See Session.init.

        Raises:
            DistError: with the names of the given options.
        """
        try:
            return self.session.init(name, start_fields(options), num_ranks)
        except JupyterDistError as err:
            words = {"The field 'num_ranks'": "-n", "'num_ranks'": "-n", "'devices'": f"-g {options.get('gpu_ids')}"}
            message = str(err)
            for field, option in words.items():
                message = message.replace(field, option)
            raise DistError(message) from None

    def restart(self) -> None:
        """Restart all ranks in new processes, set up as before, and print it."""
        group = self.session.group()
        if group.model["state"] == "lost":
            raise DistError(f"The agent of group '{group.name}' is gone. Start again: %dist_shutdown, then %dist_init.")
        group.restart()
        print(f"Group '{group.name}': {group.world_size} new ranks.")
        self._use_app_again("all")

    def replace(self) -> None:
        """Start new processes for dead ranks, set up as before; the others keep theirs."""
        group = self.session.group()
        dead = format_ranks(rank["rank"] for rank in group.status()["ranks"] if rank["state"] == "dead")
        group.replace()
        print(f"Group '{group.name}': {rank_label(dead)} replaced; the other ranks keep their variables.")
        self._use_app_again(dead)

    def _use_app_again(self, ranks: str) -> None:
        if self.session.app is not None:
            use_app(self.session, *self.session.app, ranks)
            print(f"App '{self.session.app[0]}' is in use again.")

    def mode(self) -> str:
        """Return a sentence about where cells run."""
        if self.auto.prefix is None:
            return "Cells run in the kernel; %dist_mode -e sends them to the ranks."
        return f"Cells run on the ranks (%%{self.auto.prefix}); %dist_mode -d makes them local."


def start_fields(options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of StartRequest for the given options of a magic."""
    fields = {name: options.get(name) for name in ("backend", "accelerator")}
    fields["num_ranks"] = options.get("num_processes")
    if options.get("gpu_ids"):
        fields["devices"] = parse_devices(options["gpu_ids"])
    return {name: value for name, value in fields.items() if value is not None}


def parse_devices(text: str) -> list[int] | str:
    """Parse `0,1,3`, `[0, 1]` or `all`; removes duplicates and keeps the order."""
    inner = text.strip().strip("[]")
    if inner in ("all", "-1"):
        return "all"
    try:
        return list(dict.fromkeys(int(part) for part in inner.replace(",", " ").split()))
    except ValueError:
        raise DistError(f"'{text}' is not a list of devices. Write 0,1,3 or all.") from None


def use_app(session: Session, name: str, verbose: bool, ranks: str = "all") -> None:
    """Set up an app on ranks. Raises DistError for an unknown one, RankError if it failed."""
    _run(session, f"{APPS}.use({name!r}, {verbose})", ranks)


def call_app(session: Session, command: str) -> None:
    """Call a function of the app on all ranks. Raises like `use_app`."""
    _run(session, f"{APPS}.call({command!r})", "all")


def _run(session: Session, code: str, ranks: str) -> None:
    try:
        session.run(code, ranks, show=False, silent=True)
    except RankError as err:
        wrong = [error.evalue for error in err.errors.values() if error.ename == "AppError"]
        if wrong:
            raise DistError(wrong[0]) from None
        raise
