"""A part that raises, or returns what nobody can use, in each hook of the agent and of ranks."""

import os

RETURNED = {"objects": {"x": object()}, "number": 7, "word": "soon", "content": {"some": "thing"}}


class Rude(Exception):
    def __repr__(self):
        raise TypeError("it has no words")


RAISED = {"error": RuntimeError, "exit": SystemExit, "rude": Rude}


def fail(how):
    if how in RETURNED:
        return RETURNED[how]
    raise RAISED[how]("as the test wants")


def hooked(base, name):
    """Return the hook of this name, which fails as `fault` says: (name, how)."""

    def hook(self, *args, **kwargs):
        fault = self.__dict__.get("fault") or ("", "")
        return fail(fault[1]) if fault[0] == name else getattr(base, name)(self, *args, **kwargs)

    return hook


def begins(what):
    """Fail if this is what the test wants to fail at the begin."""
    if os.environ.get("FAILS_AT_BEGIN", "") == what:
        fail("error")
