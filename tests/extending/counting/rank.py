"""The side of each rank: counts the cells that begin."""

import queue
import threading

from jupyter_dist.rank.part import RankPart


class CountingRank(RankPart):
    comes_first = True

    def __init__(self, core):
        super().__init__(core)
        self.rank, self.cells, self.code = core.spec.rank, 0, None
        self.told = queue.SimpleQueue()

    def before(self, execution, code):
        self.cells, self.code = self.cells + 1, code
        if "fail_on_rank" in execution.code:
            raise RuntimeError("as the test wants")
        if "send" in execution.code:
            self.core.send({"sent": self.rank})
        self.asked = dict(execution.asked)

    def after(self):
        return {"code": self.code, **({"asked": self.asked} if self.asked else {})}

    def calls(self):
        return {"count_by": self._count_by, "count_until_told": self._count_until_told}

    def _count_by(self, call):
        if call["number"] > 9:
            raise ValueError("it is too much")
        self.cells += call["number"]

    def _count_until_told(self, call):
        while self.core.running().interrupt_at is None:
            try:
                word = self.told.get(timeout=0.02)
            except queue.Empty:
                continue
            return self.core.send({"told": word, "in": threading.current_thread().name})
        raise KeyboardInterrupt

    def received(self, content):
        self.told.put(content["go"])

    def cell_magics(self):
        return {"counting": lambda line, cell: self.core.emit("lines", {"line": line, "lines": cell.count("\n")})}

    def requests(self):
        return {"counted": lambda header, _: {"cells": self.cells + header["more"]}}

    def idle_requests(self):
        return {"counted_idle": lambda header, _: {"cells": self.core.namespace["kept"] + header["more"]}}

    def busy_requests(self):
        return {"counted_idle": lambda header, _: {"cells": -header["more"]}}
