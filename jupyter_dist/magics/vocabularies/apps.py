"""Code for the ranks of `%makedip -a` and `%%dip -a`; the apps themselves are never imported here."""

from __future__ import annotations

from jupyter_dist.client import RankError
from jupyter_dist.magics.failures import DistError
from jupyter_dist.magics.session import Session

APPS = '__import__("jupyter_dist.apps.registry", fromlist=["registry"]).apps'


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
