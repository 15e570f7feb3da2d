"""What another package may add to ranks: docs/extending.md shows this, and a test runs it."""

from jupyter_dist.rank.frameworks.fix import Fix, before, need


def one_writer(context, toyframework):
    """Every rank would write the same file."""
    need(toyframework, "Trainer")

    def say(trainer):
        context.notice("save", f"save() on {context.world_size} ranks: one of them writes.")

    before(toyframework.Trainer, "save", say)


FIXES = [Fix("toyframework", "1.", "save() says that one rank writes", one_writer)]


class Seeds:
    """An app: `%makedip -a seeds` sets it up on all ranks, `%%dip --appcmd again` calls `again`."""

    imports = ("import random",)

    def initializer(self):
        self.again()

    def again(self):
        import random

        random.seed(7)


seeds = Seeds()
