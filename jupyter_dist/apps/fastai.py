"""fastai: every Learner trains distributed, in cells that know nothing of it, and only rank 0 draws progress bars."""

from __future__ import annotations

from fastai.basics import Callback, defaults
from fastai.callback.progress import ProgressCallback
from fastai.distributed import DistributedTrainer, num_distrib, rank_distrib
from torch.nn.parallel import DistributedDataParallel


def initializer() -> None:
    """From now on every Learner gets a DistributedTrainer."""
    finalizer()
    defaults.callbacks.append(EveryLearner)


def finalizer() -> None:
    """New Learners are fastai's own again."""
    if EveryLearner in defaults.callbacks:
        defaults.callbacks.remove(EveryLearner)


class EveryLearner(Callback):
    """Sees to it that a Learner has one DistributedTrainer, whoever added or removed others."""

    order = DistributedTrainer.order - 1

    def after_create(self) -> None:
        """Called by fastai."""
        self._have_one_trainer()

    def before_fit(self) -> None:
        """Called by fastai."""
        self._have_one_trainer("before_fit")

    def before_validate(self) -> None:
        """Called by fastai, also outside of a fit."""
        self._have_one_trainer("before_validate")

    def _have_one_trainer(self, event: str | None = None) -> None:
        if num_distrib() <= 1:
            return
        trainers = [each for each in self.learn.cbs if isinstance(each, DistributedTrainer)]
        if event == "before_fit" and trainers and isinstance(self.learn.model, DistributedDataParallel):
            trainers[-1].after_fit()  # the fit before raised, and fastai left the model wrapped
        for more in trainers[:-1]:  # `with learn.distrib_ctx()` came on top: two would wrap the model twice
            more.run = False
        if rank_distrib():
            # Not removed: fastai is in the middle of its list of callbacks.
            for bar in (each for each in self.learn.cbs if isinstance(each, ProgressCallback)):
                bar.run = False
        if not trainers:
            trainer = DistributedTrainer(sync_bn=self.learn.dls.device.type != "cpu")  # there it cannot be had
            self.learn.add_cb(trainer)
            if event is not None:  # the list of those who hear of it was made before it came
                trainer(event)
