"""Lightning Fabric and Lightning's Trainer, also as the packages `lightning_fabric` and `pytorch_lightning`."""

from __future__ import annotations

from typing import Any

from jupyter_dist.rank.frameworks.fix import Fix, RankContext, after, before, need

INTERRUPTIBLE = True  # cells run and wait below these functions

SEEN_WITH = "2.6"


def launch_in_place(_: RankContext, ddp: Any) -> None:
    """Run ddp_notebook, ddp_fork, ddp_spawn and DDPStrategy(start_method=...) in the existing ranks.

    Unpatched, they fork inside every rank and hang.
    """

    def choose(strategy: Any) -> None:
        strategy._start_method = "popen"  # Lightning's name for "something else started the processes"

    before(ddp.DDPStrategy, "_configure_launcher", choose)


def not_interactive(_: RankContext, imports: Any) -> None:
    """Allow ddp even if sys.ps1 was set, for example by an embedded shell."""
    need(imports, "_IS_INTERACTIVE")
    imports._IS_INTERACTIVE = False


def take_timeout(context: RankContext, distributed: Any) -> None:
    """Use the timeout of a strategy for the existing process group; unpatched, Lightning drops it."""

    def take(*_: Any, timeout: Any = None, **__: Any) -> None:
        context.take_timeout(timeout)

    before(distributed, "_init_dist_connection", take)


def keep_world_size(_: RankContext, environment: Any) -> None:
    """Keep WORLD_SIZE, which the next cell needs; the Trainer's teardown with LightningEnvironment() deletes it."""
    need(environment.LightningEnvironment, "teardown")
    environment.LightningEnvironment.teardown = lambda _: None


def notice_fabric(context: RankContext, fabric: Any) -> None:
    """Report a Fabric() without devices on CPU: it uses one process on every rank."""

    def look(made: Any, *_: Any, **__: Any) -> None:
        context.notice_alone("Fabric()", made.world_size, f"Use Fabric(devices={context.world_size}) to train on all.")

    after(fabric.Fabric, "__init__", look)


def notice_trainer(context: RankContext, trainer: Any) -> None:
    """Report a Trainer() without devices on CPU: it uses one process on every rank."""

    def look(made: Any, *_: Any, **__: Any) -> None:
        context.notice_alone(
            "Trainer()", made.world_size, f"Use Trainer(devices={context.world_size}) to train on all."
        )

    after(trainer.Trainer, "__init__", look)


_IN_PLACE = "strategies that fork or spawn (ddp_notebook, ddp_fork, ddp_spawn) run in place in the ranks"
_INTERACTIVE = "a rank does not count as an interactive session"
_WORLD_SIZE = "LightningEnvironment leaves WORLD_SIZE in the environment"
_TIMEOUT = "a strategy's timeout is set on the existing process group"
_ALONE = "training on one process is reported once"


def _fixes(package: str, fabric: str, trainer: str) -> dict[str, list[Fix]]:
    table = {
        f"{fabric}.utilities.imports": (_INTERACTIVE, not_interactive),
        f"{fabric}.utilities.distributed": (_TIMEOUT, take_timeout),
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
