"""When a group parks itself: as the start says, else as the server is configured for groups on devices."""

from jupyter_dist.parts.parking.server import ParkingOperations
from jupyter_dist.server.devices.reader import DeviceReader
from jupyter_dist.server.groups.manager import GroupManager
from jupyter_dist.server.groups.resolve import Again, GroupDefaults, WantedGroup


def test_groups_on_devices_are_parked_after_the_time_of_the_server():
    defaults = GroupDefaults(of_parts={"park_after_seconds": 1800.0})
    part = ParkingOperations(GroupManager(None, None, DeviceReader(), defaults, keep_warm=False, launchers=dict))

    def seconds(accelerator="cuda", **options):
        request = WantedGroup.of(options)
        chosen = defaults.chosen(request)["options"]
        return {**chosen, **part.start_options(request, {"accelerator": accelerator})}["park_after_seconds"]

    assert seconds() == 1800.0
    assert seconds("cpu") == 0.0
    assert seconds("cpu", park_after_seconds=60.0) == 60.0
    assert seconds(park_after_seconds=0.0) == 0.0


def test_groups_that_made_room_are_for_the_start_alone():
    """They may be gone when the group is started again."""
    request = WantedGroup.of({"name": "g", "park": ["other"], "park_after_seconds": 5.0})
    assert request.options == {"park": ["other"], "park_after_seconds": 5.0}
    assert "park" not in GroupDefaults().chosen(request)["options"]
    assert Again().completed(request.fields()).options == {"park_after_seconds": 5.0}
