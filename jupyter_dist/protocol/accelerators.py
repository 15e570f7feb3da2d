"""The table of accelerators and their backends: everything that differs between vendors.

Server, agent and ranks use it; no other code names a vendor's device, variable or backend (tests/test_architecture.py).
docs/extending.md describes how to add a row.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RasPort:
    """Where processes report on their communicators."""

    address: str
    address_variable: str
    enabled_variable: str  # "0": nowhere


@dataclass(frozen=True)
class Backend:
    """A torch.distributed backend."""

    name: str
    interface_variable: str  # names the network interface it uses
    label: str = ""  # display name
    adapters_variable: str | None = None  # names the InfiniBand adapters that it uses
    family_variable: str | None = None  # limits it to AF_INET or AF_INET6
    setting_prefixes: tuple[str, ...] = ()  # of the variables that change its behavior
    address_variables: tuple[str, ...] = ()  # variables that would let other machines take part
    environment: Mapping[str, str] = field(default_factory=dict)  # what ranks need to be interrupted and watched
    host_variable: str | None = None  # names the host of a rank: it refuses two ranks of one host on the same device
    shared_environment: Mapping[str, str] = field(default_factory=dict)  # what ranks on the same device need besides
    lost_signs: tuple[str, ...] = ()  # of torch's errors when the communicator or a peer is gone
    timeout_signs: tuple[str, ...] = ()  # of torch's errors after a timeout
    joins_as: str | None = None  # the backend argument of ranks, if not the name: adds one for tensors on the CPU
    is_eager: bool = (
        False  # ranks are ready when their communicators are: a first collective that hangs has none to end
    )
    ras: RasPort | None = None
    # What a user's own variables change here: (name, values, what then).
    changes: tuple[tuple[str, tuple[str, ...], str], ...] = ()

    @property
    def joined_as(self) -> str:
        """Return the backend with which ranks join."""
        return self.joins_as or self.name

    def changed_by(self, environment: Mapping[str, str]) -> list[str]:
        """Return a sentence for each variable in a rank's environment that changes what happens to hung collectives."""
        return [
            f"{name}={environment[name]} in this group's environment: {what}."
            for name, values, what in self.changes
            if environment.get(name, "").upper() in values
        ]


@dataclass(frozen=True)
class Accelerator:
    """A kind of device, with the name used in start requests."""

    name: str
    label: str  # display name
    device_type: str  # torch's: torch.device(device_type), and the module torch.<device_type>
    backends: tuple[str, ...]  # the first is the default
    built_as: str | None  # the name of its version in torch/version.py; None if there is none
    visible_devices: str | None  # the variable that has the group's devices
    order: Mapping[str, str] = field(default_factory=dict)  # variables that make it count devices as its reader does
    hide: Mapping[str, str] = field(default_factory=dict)  # variables that hide it from ranks of a CPU group
    zygote_environment: Mapping[str, str] = field(default_factory=dict)  # keeps the zygote from initializing it
    reader: str | None = None  # module:class of its device reader in the server
    # A library of its driver, a function there that counts devices and starts nothing, and its result before a start.
    driver: tuple[str, str, int] | None = None
    has_checkpoint: bool = False  # its driver can move the memory of a process to the host, and back
    # Error messages of its runtime, or of the library of its collectives, after a process has lost its device: every
    # later call fails with them.
    lost_signs: tuple[re.Pattern[str], ...] = ()

    @property
    def has_devices(self) -> bool:
        """Whether ranks run on its devices."""
        return self.visible_devices is not None


# Of cudaGetErrorString, and HIP's are the same words.
_LOST_WORDS = (
    "device-side assert triggered",
    "an illegal memory access was encountered",
    "an illegal instruction was encountered",
    "misaligned address",
    "operation not supported on global/shared address space",
    "invalid program counter",
    "hardware stack error",
    "unspecified launch failure",
    "the launch timed out and was terminated",
    "uncorrectable ECC error encountered",
    "uncorrectable NVLink error detected during the execution",
    "Invalid access of peer GPU memory over nvlink or a hardware error",
    "GPU is lost",
)
_LOST = "|".join(map(re.escape, _LOST_WORDS))

# Libraries that may share the memory of tensors by its address.
SHARING_LIBRARIES = ("cupy", "numba.cuda", "jax", "cudf", "tensorflow", "warp", "pycuda")

CPU = Accelerator("cpu", "CPU", "cpu", ("gloo",), None, None)

_ROWS = (
    Accelerator(
        name="cuda",
        label="CUDA",
        device_type="cuda",
        backends=("nccl", "gloo"),
        built_as="cuda",
        visible_devices="CUDA_VISIBLE_DEVICES",
        order={"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},  # by default the fastest comes first
        hide={"CUDA_VISIBLE_DEVICES": ""},
        # Makes torch.cuda.is_available() ask NVML, which does not initialize CUDA, so that forking stays possible.
        zygote_environment={"PYTORCH_NVML_BASED_CUDA_CHECK": "1"},
        reader="jupyter_dist.server.devices.nvml:NvmlReader",
        driver=("libcuda.so.1", "cuDeviceGetCount", 3),
        has_checkpoint=True,
        # The messages of torch, and of NCCL as torch quotes them: with the error's number in later versions.
        lost_signs=(re.compile(f"CUDA error: ({_LOST})"), re.compile(rf"Cuda failure (\d+ )?'({_LOST})")),
    ),
    # torch for ROCm keeps the names cuda and nccl; only the driver's own differ. Not run on a device yet.
    Accelerator(
        name="rocm",
        label="ROCm",
        device_type="cuda",
        backends=("nccl", "gloo"),
        built_as="hip",
        visible_devices="HIP_VISIBLE_DEVICES",
        hide={"HIP_VISIBLE_DEVICES": "-1"},
        reader="jupyter_dist.server.devices.amdsmi:AmdSmiReader",
        lost_signs=(re.compile(f"HIP error: ({_LOST})"), re.compile(rf"HIP failure (\d+ )?'({_LOST})")),
    ),
    # Not run on a device yet. xccl needs torch 2.8.
    Accelerator(
        name="xpu",
        label="XPU",
        device_type="xpu",
        backends=("xccl", "gloo"),
        built_as="xpu",
        visible_devices="ZE_AFFINITY_MASK",
        hide={"ONEAPI_DEVICE_SELECTOR": "*:cpu"},
        reader="jupyter_dist.server.devices.xpusmi:XpuSmiReader",
    ),
    # Only shown: ranks need Linux.
    Accelerator(
        name="mps",
        label="MPS",
        device_type="mps",
        backends=("gloo",),
        built_as=None,
        visible_devices=None,
        reader="jupyter_dist.server.devices.mps:MpsReader",
    ),
    CPU,
)

ACCELERATORS: Mapping[str, Accelerator] = {row.name: row for row in _ROWS}
# The accelerators that ranks can run on, and among them the ones with devices: `auto` uses the first available.
STARTABLE = tuple(row for row in _ROWS if row.built_as or row is CPU)
WITH_DEVICES = tuple(row for row in STARTABLE if row.has_devices)
OF_NVML = "cuda"  # the accelerator whose devices NVIDIA's library lists

_ENDS_RANKS = (
    "torch ends a rank whose collective over NCCL takes longer than its time limit, and its variables are lost"
)
_DETAIL = f"a barrier precedes each collective, and {_ENDS_RANKS}"

BACKENDS: Mapping[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend("gloo", "GLOO_SOCKET_IFNAME", "gloo", address_variables=("TP_SOCKET_IFNAME",)),
        Backend(
            "nccl",
            "NCCL_SOCKET_IFNAME",
            "NCCL",
            adapters_variable="NCCL_IB_HCA",
            family_variable="NCCL_SOCKET_FAMILY",
            setting_prefixes=("NCCL_", "TORCH_NCCL_"),
            address_variables=("NCCL_COMM_ID",),
            # torch's own watchdog ends the process, and with it the variables; the agent watches instead.
            environment={
                "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
                "TORCH_NCCL_ENABLE_MONITORING": "0",
                "TORCH_NCCL_RETHROW_CUDA_ERRORS": "0",
                "TORCH_NCCL_PROPAGATE_ERROR": "0",
                "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
                # After an error of NCCL torch waits four times as long with a lock that leaving the group needs.
                "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "1",
                "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC": "1",
                # torch 2.15 has another one, with another watchdog and abort, which was not seen to free ranks.
                "TORCH_DIST_USE_NCCL2": "0",
            },
            joins_as="cpu:gloo,cuda:nccl",  # torch's own default: tensors on the CPU, such as objects, need gloo
            is_eager=True,
            ras=RasPort("localhost:28028", "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE"),
            changes=(
                ("TORCH_DISTRIBUTED_DEBUG", ("DETAIL",), _DETAIL),
                ("TORCH_NCCL_ASYNC_ERROR_HANDLING", ("1", "2", "3"), _ENDS_RANKS),
                ("NCCL_ASYNC_ERROR_HANDLING", ("1", "2", "3"), _ENDS_RANKS),
                ("TORCH_NCCL_BLOCKING_WAIT", ("1",), "waits for NCCL end its communicators at the time limit"),
                ("TORCH_DIST_USE_NCCL2", ("1",), "torch's second NCCL was not seen to free ranks of a hang"),
            ),
            lost_signs=(
                "NCCL communicator was aborted",
                "ncclRemoteError",
                "remote process exit",
                "Connection closed by remote peer",
            ),
            host_variable="NCCL_HOSTID",
            shared_environment={"NCCL_MULTI_RANK_GPU_ENABLE": "1"},  # NCCL 2.30 asks for it, 2.28 does not know it
            timeout_signs=("NCCL operation timed out", "Watchdog caught collective operation timeout", "Wait timeout"),
        ),
        Backend("xccl", "CCL_KVS_IFACE", "XCCL", setting_prefixes=("CCL_", "FI_"), address_variables=("FI_TCP_IFACE",)),
    )
}

# The names that starts and commands accept.
ACCELERATOR_CHOICES = ("auto", *(row.name for row in STARTABLE))
BACKEND_CHOICES = ("auto", *dict.fromkeys(name for row in STARTABLE for name in row.backends))
DEVICE_TYPES = tuple(dict.fromkeys(row.device_type for row in WITH_DEVICES))


def on_interface(name: str) -> dict[str, str]:
    """Return variables that make all backends listen on this network interface; "lo" is this machine only."""
    return {backend.interface_variable: name for backend in BACKENDS.values()}


def without_devices() -> dict[str, str]:
    """Return variables that hide all devices from a process."""
    return {name: value for row in WITH_DEVICES for name, value in row.hide.items()}


def for_zygote() -> dict[str, str]:
    """Return variables with which checking for devices does not initialize them, so that forking stays possible."""
    return {name: value for row in WITH_DEVICES for name, value in row.zygote_environment.items()}


# The index of a device or a tile, or the name of a device or of a part. Engines write other words if there is none.
_DEVICE = re.compile(r"\d+(\.\d+)*|(GPU|MIG)-.+")
# Of Slurm: indices of the machine, for clusters that leave the vendors' variables alone.
_OF_ENGINES = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")


def given_devices(name: str, environment: Mapping[str, str], num_seen: int = 0) -> list[str] | None:
    """Return the devices of an accelerator that this environment leaves to its processes; None: all of the machine's.

    Args:
        name: of the accelerator.
        environment: as an engine, or a user, has set it.
        num_seen: how many devices the driver shows this process; 0 if that is not known.
    """
    variable = ACCELERATORS[name].visible_devices
    if variable is not None and variable in environment:
        return _devices(environment[variable])
    for other in _OF_ENGINES:
        if (found := _devices(environment.get(other, ""))) and len(found) < num_seen:  # else it sees its own alone
            return found
    return None


def _devices(text: str) -> list[str]:
    """Return the devices in the value of such a variable, up to the first word that is none, as drivers do."""
    return list(itertools.takewhile(_DEVICE.fullmatch, (word.strip() for word in text.split(","))))


def device_of(name: str, local_rank: int) -> str:
    """Return torch's name for the device of a rank."""
    row = ACCELERATORS[name]
    return f"{row.device_type}:{local_rank}" if row.has_devices else row.device_type


def built_for(versions: Mapping[str, str | None]) -> dict[str, str]:
    """Return the accelerators that a torch was built for, with their versions.

    Args:
        versions: the versions in its torch/version.py, by `built_as`.
    """
    return {row.name: version for row in WITH_DEVICES if (version := versions.get(row.built_as or ""))}


def labels(rows: Iterable[Accelerator] = WITH_DEVICES) -> str:
    """Return the accelerators as text: "CUDA, ROCm or XPU"."""
    *some, last = (row.label for row in rows)
    return f"{', '.join(some)} or {last}" if some else last
