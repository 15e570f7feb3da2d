"""Lightning Fabric and Lightning's Trainer, and their twins `lightning_fabric` and `pytorch_lightning`."""

from __future__ import annotations

from typing import Any

from .fix import Fix, Room, after, before, need

INTERRUPTIBLE = True  # cells run and wait below these functions

SEEN_WITH = "2.6"


def launch_in_place(_: Room, ddp: Any) -> None:
    """ddp_notebook, ddp_fork, ddp_spawn and DDPStrategy(start_method=...): the processes are there already.

    Unpatched they fork inside every rank, and hang.
    """

    def choose(strategy: Any) -> None:
        strategy._start_method = "popen"  # Lightning's name for "something else started the processes"

    before(ddp.DDPStrategy, "_configure_launcher", choose)


def not_interactive(_: Room, imports: Any) -> None:
    """Once sys.ps1 was set, by an embedded shell say, ddp would be refused."""
    need(imports, "_IS_INTERACTIVE")
    imports._IS_INTERACTIVE = False


def keep_world_size(_: Room, environment: Any) -> None:
    """The Trainer's teardown with LightningEnvironment() deletes WORLD_SIZE, which the next cell needs."""
    need(environment.LightningEnvironment, "teardown")
    environment.LightningEnvironment.teardown = lambda _: None


def notice_fabric(room: Room, fabric: Any) -> None:
    """A bare Fabric() on CPU is one process, on every rank."""

    def look(made: Any, *_: Any, **__: Any) -> None:
        room.notice_alone("Fabric()", made.world_size, f"Fabric(devices={room.world_size}) trains on all of them.")

    after(fabric.Fabric, "__init__", look)


def notice_trainer(room: Room, trainer: Any) -> None:
    """So is a bare Trainer()."""

    def look(made: Any, *_: Any, **__: Any) -> None:
        room.notice_alone("Trainer()", made.world_size, f"Trainer(devices={room.world_size}) trains on all of them.")

    after(trainer.Trainer, "__init__", look)


_IN_PLACE = "strategies that fork or spawn (ddp_notebook, ddp_fork, ddp_spawn) run in place in the ranks"
_INTERACTIVE = "a rank is not taken for an interactive session"
_WORLD_SIZE = "LightningEnvironment leaves WORLD_SIZE in the environment"
_ALONE = "on one process it says so, once"


def _fixes(package: str, fabric: str, trainer: str) -> dict[str, list[Fix]]:
    table = {
        f"{fabric}.utilities.imports": (_INTERACTIVE, not_interactive),
        f"{fabric}.plugins.environments.lightning": (_WORLD_SIZE, keep_world_size),
        f"{fabric}.strategies.ddp": (f"Fabric: {_IN_PLACE}", launch_in_place),
        f"{fabric}.fabric": (f"Fabric: {_ALONE}", notice_fabric),
        f"{trainer}.strategies.ddp": (f"Trainer: {_IN_PLACE}", launch_in_place),
        f"{trainer}.trainer.trainer": (f"Trainer: {_ALONE}", notice_trainer),
    }
    return {module: [Fix(package, SEEN_WITH, does, apply)] for module, (does, apply) in table.items()}


FIXES = {
    **_fixes("lightning", "lightning.fabric", "lightning.pytorch"),
    **_fixes("pytorch-lightning", "lightning_fabric", "pytorch_lightning"),
}
