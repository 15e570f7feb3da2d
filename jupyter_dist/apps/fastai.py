"""fastai: every Learner trains distributed without changes to the cells; only rank 0 draws progress bars."""

from __future__ import annotations

from fastai.basics import Callback, defaults
from fastai.callback.progress import ProgressCallback
from fastai.distributed import DistributedTrainer, num_distrib, rank_distrib
from torch.nn.parallel import DistributedDataParallel


def initializer() -> None:
    """Give every Learner a DistributedTrainer from now on."""
    finalizer()
    defaults.callbacks.append(EveryLearner)


def finalizer() -> None:
    """Restore fastai's own behavior for new Learners."""
    if EveryLearner in defaults.callbacks:
        defaults.callbacks.remove(EveryLearner)


class EveryLearner(Callback):
    """Makes sure that a Learner has exactly one DistributedTrainer."""

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
            trainers[-1].after_fit()  # the previous fit raised, and fastai left the model wrapped
        for more in trainers[:-1]:  # added by `with learn.distrib_ctx()`: two would wrap the model twice
            more.run = False
        if rank_distrib():
            # Not removed, because fastai is iterating over its callbacks.
            for bar in (each for each in self.learn.cbs if isinstance(each, ProgressCallback)):
                bar.run = False
        if not trainers:
            trainer = DistributedTrainer(sync_bn=self.learn.dls.device.type != "cpu")  # not available on CPU
            self.learn.add_cb(trainer)
            if event is not None:  # it was added after fastai listed the callbacks for this event
                trainer(event)
