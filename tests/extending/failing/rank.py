"""The side of each rank."""

import time

from jupyter_dist.rank.part import RankPart

from . import begins, fail, hooked


class FailingRank(RankPart):
    def received(self, content):
        if self.__dict__.get("fault", ("",))[0] == "received":
            fail(self.fault[1])
        self.fault = content["fault"]

    def requests(self):
        return {"rank_is_there": lambda *_: {"here": True}, "rank_fails": lambda header, _: fail(header["how"])}

    def idle_requests(self):
        return {"rank_fails_idle": lambda header, _: fail(header["how"])}

    def later_requests(self):
        return {"rank_fails_later": lambda header, _, reply: reply(fail(header["how"]))}

    def calls(self):
        begins("calls")
        return {"wait_long": self._wait}

    def _wait(self, call):
        while self.core.running().interrupt_at is None:
            time.sleep(0.01)
        raise KeyboardInterrupt


for name in ("before", "after", "interrupted", "take_place", "timeout", "tick", "cut_off"):
    setattr(FailingRank, name, hooked(RankPart, name))
