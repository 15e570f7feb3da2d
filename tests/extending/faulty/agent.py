"""The agent's side."""

from importlib import import_module

from jupyter_dist.agent.contact.server_link import answer
from jupyter_dist.agent.part import AgentPart


class FaultyAgent(AgentPart):
    def __init__(self, core):
        super().__init__(core)
        self.mended = []

    def requests(self):
        return {"break": self._break, "mend": self._mend}

    async def _break(self, header, _):
        """Have a method raise (or return something else) from now on, once it was called so many times."""
        module, _, path = header["what"].partition(":")
        owner, _, name = path.rpartition(".")
        where = getattr(import_module(module), owner) if owner else import_module(module)
        sound, calls = getattr(where, name), []

        def broken(*args, **kwargs):
            calls.append(1)
            if len(calls) <= header.get("after", 0):
                return sound(*args, **kwargs)
            if "returns" in header:
                return {"objects": object(), "nothing": None, "number": 7}[header["returns"]]
            raise {"runtime": RuntimeError, "exit": SystemExit, "stop": StopIteration, "rude": Rude}[
                header.get("raises", "runtime")
            ]("as the test wants")

        is_own = name in vars(where)
        setattr(where, name, broken)
        self.mended.append(lambda: setattr(where, name, sound) if is_own else delattr(where, name))
        return answer()

    async def _mend(self, _header, _):
        while self.mended:
            self.mended.pop()()
        return answer()


class Rude(Exception):
    def __repr__(self):
        raise TypeError("it has no words")
