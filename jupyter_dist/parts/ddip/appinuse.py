"""The app that a notebook's ranks use: new ranks get it, too."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from jupyter_dist.client import Group, RankError, TimedOutError
from jupyter_dist.magics.failures import DistError
from jupyter_dist.magics.session import Session

# Evaluated on ranks; the apps themselves are never imported here.
APPS = '__import__("jupyter_dist.apps.registry", fromlist=["registry"]).apps'
# An idle rank answers within milliseconds; on a busy machine it may take longer, and is asked again.
ASK_SECONDS = 3.0
ASKS = 3


class App(NamedTuple):
    """What sets a framework up on the ranks."""

    name: str
    verbose: bool = False
    when_imported: bool = False  # not at once, but after a cell that imports the framework


class AppInUse:
    """The app on the ranks of a session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.app: App | None = None
        self.next: App | None = None  # after a restart

    def use(self, app: App, ranks: str = "all") -> None:
        """Set up an app on ranks. Raises DistError for an unknown one, RankError if it failed."""
        verb = "use_when_imported" if app.when_imported else "use"
        self.call(f"{verb}({app.name!r}, {app.verbose})", ranks)
        self.app = app

    def call(self, call: str, ranks: str = "all") -> None:
        """Call a method of the ranks' apps. Raises like `use`."""
        try:
            self._session.run(f"{APPS}.{call}", ranks, show=False, silent=True)
        except RankError as err:
            wrong = [error.evalue for error in err.errors.values() if error.ename == "AppError"]
            if wrong:
                raise DistError(wrong[0]) from None
            raise

    def known(self, group: Group) -> App | None:
        """Return the app in use: rank 0 knows it after a restart of the kernel, if it can answer at once."""
        if self.app is not None and not self.app.when_imported:
            return self.app
        for _ in range(ASKS):
            if group.status().ranks[0].state != "idle":
                break
            with suppress(TimedOutError):  # since that status a cell has begun on it, perhaps an endless one
                found = group.pull(f"{APPS}.in_use", timeout_seconds=ASK_SECONDS)
                return App(*found) if found else None
        return self.app

    def before_restart(self, group: Group) -> None:
        """Ask for the app while its ranks are there."""
        self.app, self.next = self.next or self.known(group), None

    def new_ranks(self, ranks: str) -> None:
        """Set up the app of the ranks' predecessors on new ranks."""
        if (app := self.app) is not None:
            self.use(app, ranks)
            if not app.when_imported:
                print(f"App '{app.name}' is in use again.")

    def forgotten(self) -> None:
        """Forget the app of a group that was shut down."""
        self.app = self.next = None
