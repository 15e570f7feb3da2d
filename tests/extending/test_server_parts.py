"""What parts add to the groups of a server. One that fails is left out, and the others are asked all the same."""

import asyncio

import pytest

from jupyter_dist.protocol import parts
from jupyter_dist.protocol.errors import JupyterDistError
from jupyter_dist.server.devices.reader import DeviceReader
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.groups.resolve import GroupDefaults, WantedGroup
from jupyter_dist.server.mirror.status import GroupStatus
from jupyter_dist.server.part import ServerPart, ServerParts


class Counting(ServerPart):
    looks = 0

    def adopted(self):
        self.looks += 1

    def start_options(self, request, fields):
        return {"saves_folder": f"{self.manager.defaults.root_dir}/kept"}

    async def before_start(self, request):
        self.looks += 10
        if request.name == "refused":
            raise JupyterDistError("group_not_ready", "No room.")

    def start_note(self, fields):
        return f"{fields['name']} is not alone." if self.looks > 9 else None

    def group_fields(self, status):
        return {"kept": f"of {status.name or 'none'}", "looks": self.looks}

    def ways_to_replace(self):
        return {"kept": lambda group, **fields: {"group": group, **fields}}


class Failing(ServerPart):
    async def before_start(self, request):
        raise ValueError

    def start_options(self, request, fields):
        raise ValueError


@pytest.fixture
def manager(monkeypatch):
    found = parts.PartClasses({"failing": Failing, "counting": Counting}, [])
    monkeypatch.setattr(parts, "find_parts", lambda *_: found)
    manager = GroupManager(None, None, DeviceReader(), GroupDefaults("/root"), keep_warm=False, launchers=dict)
    ServerParts(manager)
    return manager


def test_parts_add_to_the_start_and_to_the_model_of_a_group(manager, caplog):
    assert manager.parts.group_fields(GroupStatus()) == {}  # they start with the first request, or after the adoption
    assert manager.parts.start_options(None, {}) == {"saves_folder": "/root/kept"}
    assert "the part 'failing' is left out" in caplog.text
    caplog.clear()
    manager.parts.adopted()
    assert manager.parts.group_fields(GroupStatus()) == {"kept": "of none", "looks": 1}
    assert manager.parts.start_options(None, {}) == {"saves_folder": "/root/kept"}
    assert not caplog.text


def test_parts_prepare_a_start_refuse_it_and_add_a_note(manager, caplog):
    assert manager.parts.start_note({"name": "g"}) is None
    asyncio.run(manager.parts.before_start(WantedGroup(name="g")))
    assert "the part 'failing' is left out" in caplog.text
    assert manager.parts.start_note({"name": "g"}) == "g is not alone."
    with pytest.raises(JupyterDistError, match="No room"):
        asyncio.run(manager.parts.before_start(WantedGroup(name="refused")))
    with pytest.raises(JupyterDistError, match="No room"):  # it is not left out for that
        asyncio.run(manager.parts.before_start(WantedGroup(name="refused")))


@pytest.mark.parametrize("found", [SystemExit(1), None, 7, {"x": object()}], ids=["exit", "none", "number", "objects"])
@pytest.mark.parametrize("hook", ["start_options", "group_fields", "ways_to_replace", "start_note", "works_at_end"])
def test_a_part_that_fails_anywhere_takes_no_other_along_and_is_stopped(monkeypatch, caplog, hook, found):
    stopped = []

    class Wrong(ServerPart):
        async def stop(self):
            stopped.append(self)

    def wrong(*_):
        if isinstance(found, BaseException):
            raise found
        return found

    async def use():
        manager = GroupManager(None, None, DeviceReader(), GroupDefaults("/root"), keep_warm=False, launchers=dict)
        asked = ServerParts(manager)
        asked.start()
        for _ in range(2):
            assert asked.start_options(None, {})["saves_folder"] == "/root/kept"
            assert asked.group_fields(GroupStatus())["kept"] == "of none"
            assert asked.way_to_replace("kept") is not None
            asked.start_note({"name": "g"})
            asked.work_at_end({})
        await asked.stop()

    monkeypatch.setattr(Wrong, hook, wrong)
    classes = parts.PartClasses({"wrong": Wrong, "counting": Counting}, [])
    monkeypatch.setattr(parts, "find_parts", lambda *_: classes)
    asyncio.run(use())
    assert len(stopped) == 1
    is_fine = hook in ("start_note", "works_at_end") and not isinstance(found, BaseException)
    is_fine |= hook == "ways_to_replace" and isinstance(found, dict)
    assert ("the part 'wrong' is left out" in caplog.text) == (not is_fine)


def test_parts_have_ways_to_replace_ranks(manager):
    way = manager.parts.way_to_replace("kept")
    assert way("g", save="first") == {"group": "g", "save": "first"}
    assert manager.parts.way_to_replace("copy") is None


def test_a_server_without_parts_has_none_of_it():
    manager = GroupManager(None, None, DeviceReader(), GroupDefaults(), keep_warm=False, launchers=dict)
    assert (manager.parts.start_options(None, {}), manager.parts.group_fields(GroupStatus())) == ({}, {})
    assert manager.parts.way_to_replace("save") is None
    assert manager.parts.start_note({}) is None
