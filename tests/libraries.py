"""What optimizers, frameworks and examples import, for JUPYTER_DIST_OPTIONAL_PRELOAD: once, not by each rank.

The frameworks themselves are not among it: cells import them, as users' do, and are seen to be fixed by that.
"""

LIGHT = ("numpy",)  # for all tests that do not say otherwise
# Torch's own is the default of users' zygotes; by this name it is there for a group that a user waits for, too.
OPTIMIZERS = ("numpy", "torch._dynamo.config", "matplotlib")
EXAMPLES = (*OPTIMIZERS, "sklearn.datasets")
FSDP = ("numpy", "torch._dynamo.config", "torch.distributed.fsdp")
PARALLEL = (*FSDP, "torch.distributed.checkpoint", "torch.distributed.pipelining", "torch.distributed.tensor.parallel")
FABRIC = (*OPTIMIZERS, "torchmetrics.functional")
ACCELERATE = (*OPTIMIZERS, "transformers")
FASTAI = EXAMPLES  # not fastcore nor fastprogress, which look when they are imported whether this is a notebook


def preloading(modules):
    """The variable that has zygotes import these; those that are not installed are left out."""
    return {"JUPYTER_DIST_OPTIONAL_PRELOAD": ",".join(modules)}
