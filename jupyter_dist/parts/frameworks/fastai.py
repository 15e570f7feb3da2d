"""fastai: distrib_ctx on CPU, lr_find inside it, and a process group that is kept."""

from __future__ import annotations

import io
import sys
import weakref
from typing import Any

from jupyter_dist.rank.frameworks.fix import Fix, RankContext, after, before, need

INTERRUPTIBLE = True  # cells run and wait below these functions

PACKAGE, SEEN_WITH = "fastai", "2.8"


def broadcast_where_the_group_is(context: RankContext, distributed: Any) -> None:
    """Broadcast DistributedDL's indices on the backend's device: fastai always uses a GPU, gloo needs the CPU."""
    need(distributed.DistributedDL, "_broadcast")
    torch = distributed.torch

    def _broadcast(_: Any, values: Any, rank: int) -> Any:
        indices = torch.tensor(values, dtype=torch.long, device=_device(torch, context.device))
        torch.distributed.broadcast(indices, rank)
        return indices.cpu().tolist()

    distributed.DistributedDL._broadcast = _broadcast


def keep_batch_norm_on_cpu(context: RankContext, distributed: Any) -> None:
    """Use sync_bn=False on CPU, because the default True needs devices; reported once if the model has a BatchNorm."""
    batch_norm = distributed.nn.modules.batchnorm._BatchNorm

    def fall(trainer: Any) -> None:
        if trainer.sync_bn and trainer.accelerator.device.type == "cpu":
            trainer.sync_bn = False
            if any(isinstance(module, batch_norm) for module in trainer.learn.model.modules()):
                context.notice("sync_bn", "sync_bn=True needs a device: each rank keeps its own BatchNorm statistics.")

    before(distributed.DistributedTrainer, "before_fit", fall)


def keep_process_group(_: RankContext, distributed: Any) -> None:
    """Make setup_distrib and teardown_distrib keep the ranks' process group, which outlives a script."""
    need(distributed, "setup_distrib", "teardown_distrib")
    torch = distributed.torch

    def setup_distrib(gpu: Any = None) -> Any:
        """Create the process group if user code destroyed it."""
        if gpu is not None and not torch.distributed.is_initialized():
            torch.distributed.init_process_group()
        return None if gpu is None else int(gpu)

    def teardown_distrib() -> None:
        """Do nothing: the process group belongs to the ranks."""

    distributed.setup_distrib, distributed.teardown_distrib = setup_distrib, teardown_distrib


def unwrap_after_errors(_: RankContext, distributed: Any) -> None:
    """Unwrap the model after a fit that raised or was interrupted, so that the next cell can use it."""
    wrapper = distributed.DistributedDataParallel

    def unwrap(learner: Any) -> None:
        for callback in learner.cbs:
            if isinstance(callback, distributed.DistributedTrainer) and isinstance(learner.model, wrapper):
                callback.after_fit()

    before(distributed.Learner, "detach_distributed", unwrap)


def find_rates_together(_: RankContext, schedule: Any) -> None:
    """Make lr_find work in distrib_ctx, where it hangs: it restores the model from a file that only rank 0 has.

    Here each rank keeps its own copy in memory.
    """
    finder, saved = schedule.LRFinder, schedule.ParamScheduler
    need(finder, "before_fit", "after_fit")
    learning = sys.modules["fastai.learner"]
    load_model, torch = learning.load_model, learning.torch

    def before_fit(self: Any) -> None:
        saved.before_fit(self)
        state = {"model": learning.get_model(self.learn.model).state_dict(), "opt": self.learn.opt.state_dict()}
        self.kept = io.BytesIO()
        torch.save(state, self.kept)
        self.best_loss = float("inf")

    def after_fit(self: Any) -> None:
        self.learn.opt.zero_grad()
        self.kept.seek(0)
        load_model(self.kept, self.learn.model, self.learn.opt, device=getattr(self.learn.dls, "device", None))
        del self.kept

    finder.before_fit, finder.after_fit = before_fit, after_fit


def gather_in_context(_: RankContext, torch_core: Any) -> None:
    """Average losses over ranks only in distrib_ctx; otherwise a learner that trains on one rank waits forever."""
    need(torch_core, "to_detach")
    gather = torch_core.maybe_gather

    def maybe_gather(x: Any, axis: int = 0) -> Any:
        trainer = getattr(sys.modules.get("fastai.distributed"), "DistributedTrainer", None)
        in_use = getattr(trainer, "made", ())
        return gather(x, axis) if any(made.learn is not None for made in in_use) else x

    torch_core.maybe_gather = maybe_gather


def remember_trainers(_: RankContext, distributed: Any) -> None:
    """Record the DistributedTrainers, for `gather_in_context`."""
    trainer = distributed.DistributedTrainer
    trainer.made = weakref.WeakSet()
    after(trainer, "__init__", lambda made, *_, **__: trainer.made.add(made))


def notice_alone(context: RankContext, learner: Any) -> None:
    """Report a fit outside of distrib_ctx, which trains every rank separately; lr_find there is normal in fastai."""

    def look(learn: Any, *_: Any, cbs: Any = None, **__: Any) -> None:
        distributed = any(type(callback).__name__ == "DistributedTrainer" for callback in learn.cbs)
        if not distributed and type(cbs).__name__ != "LRFinder":
            hint = "Wrap it in `with learn.distrib_ctx():` to train on all of them."
            context.notice_alone("fit() outside of distrib_ctx", 1, hint)

    before(learner.Learner, "fit", look)


def _device(torch: Any, device: str) -> Any:
    """Return the device that the default group's collectives need."""
    return torch.device("cpu" if torch.distributed.get_backend() == "gloo" else device)


def _fix(does: str, apply: Any) -> Fix:
    return Fix(PACKAGE, SEEN_WITH, does, apply)


FIXES = {
    "fastai.torch_core": [_fix("outside of distrib_ctx losses do not wait for other ranks", gather_in_context)],
    "fastai.learner": [_fix("fit() outside of distrib_ctx is reported once", notice_alone)],
    "fastai.callback.schedule": [_fix("lr_find works on every rank, also in distrib_ctx", find_rates_together)],
    "fastai.distributed": [
        _fix("DistributedDL broadcasts its indices on the device of the backend", broadcast_where_the_group_is),
        _fix("", remember_trainers),
        _fix("sync_bn is False on CPU", keep_batch_norm_on_cpu),
        _fix("setup_distrib and teardown_distrib keep the process group", keep_process_group),
        _fix("the model is unwrapped after a fit that failed", unwrap_after_errors),
    ],
}
