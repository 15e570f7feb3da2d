"""Its fixes, by the module that is imported."""

from . import accelerate, fastai, lightning

FIXES = {**lightning.FIXES, **accelerate.FIXES, **fastai.FIXES}
