"""Lightning, Accelerate and fastai run unmodified in ranks: what is missing there is mended when they are imported."""

# By which code names its fixes. What ranks set in the environment for frameworks, and recover of their objects, is of
# the core; the app for fastai is Ddip's.
WORDS = ("launch_in_place", "notice_(?:fabric|trainer)", "mixed_precision", "distrib_ctx", "lr_find", "sync_bn")
