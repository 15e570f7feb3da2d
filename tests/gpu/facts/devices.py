"""Devices: names, memory, errors that stay, captures, forks."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit.lab import Lab, device_state, error_text, experiment, nvidia_smi
from kit.looks import abort_by, recorders
from kit.ranks import MULTI_RANK, Rank, clean, start_ranks


@experiment(40, "Which names, versions and devices are there?", "both dumps exist; NCCL 2.x; torch sees the device")
def names(lab: Lab) -> None:
    import torch
    import torch.distributed as dist
    from torch._C import _distributed_c10d as bindings
    from torch.distributed import distributed_c10d as c10d

    def nccl_version() -> Any:
        return torch.cuda.nccl.version()

    lab.say(
        torch=torch.__version__, cuda=torch.version.cuda, python=sys.version.split()[0],
        smi=nvidia_smi("--query-gpu=name,driver_version,memory.total,mig.mode.current,compute_mode,pci.bus_id",
                           "--format=csv,noheader"),
        dumps=[name for name in dir(bindings) if "trace" in name or "fr_" in name],
        nccl=dist.is_nccl_available(), backends=list(dist.Backend.backend_list),
        pg_nccl=[name for name in dir(getattr(c10d, "ProcessGroupNCCL", object)) if not name.startswith("__")],
        pg=[name for name in dir(dist.ProcessGroup) if name in ("abort", "shutdown", "suspend", "resume", "shrink")],
        # Not set to anything by us: what the machine brings along.
        environment={k: v for k, v in os.environ.items() if k.startswith(("NCCL", "TORCH", "CUDA", "PYTORCH"))},
        shm=os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize, cores=os.cpu_count(),
        interfaces=os.listdir("/sys/class/net") if os.path.isdir("/sys/class/net") else None,
        kernel=os.uname().release,
    )  # fmt: skip
    for what, ask in {"nccl_version": nccl_version, "config": torch.__config__.show}.items():
        with lab.step(what) as found:
            found["value"] = ask()

    def rank(r: Rank) -> None:
        with r.step("join world of one"):
            r.join()
        group = dist.group.WORLD
        kind = "cpu" if lab.dry else "cuda"
        with r.step("class of the backend") as found:
            found["class"] = type(group._get_backend(torch.device(kind))).__name__
        with r.step("first all_reduce") as found:
            found["value"] = r.all_reduce()
        with r.step("second all_reduce") as found:
            found["value"] = r.all_reduce()

    lab.say(codes=start_ranks(lab, 1, rank).wait(30))


@experiment(75, "Do two and four ranks work on one device, and what do joining and a communicator cost?",
            "without NCCL_HOSTID 'Duplicate GPU'; with it 2.0 and 4.0")  # fmt: skip
def one_gpu(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch
        import torch.distributed as dist

        if not lab.dry:
            r.ones()
        before = r.used_mib()
        with r.step("join", world=r.world):
            r.join()
        with r.step("first all_reduce", world=r.world) as found:
            found["value"] = r.all_reduce()
            found["device_mib"] = [before, r.used_mib()]
        with r.step("100 all_reduces of 4 floats", world=r.world):
            value = r.ones()
            for _ in range(100):
                dist.all_reduce(value)
            r.sync()
        with r.step("all_reduce of 64 MiB", world=r.world):
            dist.all_reduce(r.ones(1 << 24))
            r.sync()
        with r.step("all_gather, broadcast, reduce_scatter, all_to_all, send/recv, barrier", world=r.world):
            parts = [r.ones() for _ in range(r.world)]
            dist.all_gather(parts, r.ones())
            dist.broadcast(r.ones(), 0)
            if not lab.dry:
                dist.reduce_scatter(r.ones(), parts)
                dist.all_to_all_single(r.ones(4 * r.world), r.ones(4 * r.world))
            (dist.send if r.rank == 0 else dist.recv)(r.ones(), 1 - r.rank) if r.rank < 2 else None
            dist.barrier()
            r.sync()
        with r.step("new_group of all, and its first all_reduce", world=r.world) as found:
            group = dist.new_group()
            dist.all_reduce(r.ones(), group=group)
            r.sync()
            found["device_mib"] = r.used_mib()
        with r.step("destroy_process_group", world=r.world):
            dist.destroy_process_group()
        with r.step("join again and all_reduce", world=r.world) as found:
            r.join()
            found["value"] = r.all_reduce()
        del torch

    if lab.num_gpus == 1 and not lab.dry:
        lab.say(case="no NCCL_HOSTID", codes=start_ranks(lab, 2, rank, hosts=False).wait(12))
        clean(lab)
        lab.say(
            case="NCCL_MULTI_RANK_GPU_ENABLE alone", codes=start_ranks(lab, 2, rank, hosts=False, **MULTI_RANK).wait(12)
        )
        clean(lab)
    lab.say(case="two", codes=start_ranks(lab, 2, rank).wait(25))
    clean(lab)
    lab.say(case="four", codes=start_ranks(lab, 4, rank).wait(25))


@experiment(60, "A device-side assert: what is raised, at the next calls too, and does the process live on?",
            "a CUDA error at each call; the process lives; memory readers do not raise in the side thread")  # fmt: skip
def sticky_error(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch

        r.join()
        r.all_reduce()
        if r.lab.dry:
            return
        kept = torch.ones(4)
        on_device = r.ones(1 << 20)
        try:
            index = torch.tensor([1 << 20], device=r.device)
            r.say(first=str(torch.zeros(4, device=r.device)[index].sum().item()))
        except Exception as err:
            r.say(first=error_text(err), type=[base.__name__ for base in type(err).__mro__],
                  fields={name: str(getattr(err, name, None))[:100] for name in dir(err) if name[0] != "_"})  # fmt: skip
        for what, ask in {
            "ones": lambda: r.ones().sum().item(),
            "cpu()": lambda: on_device.cpu().sum().item(),
            "all_reduce": r.all_reduce,
            "synchronize": torch.cuda.synchronize,
            "empty_cache": torch.cuda.empty_cache,
            "memory_allocated": torch.cuda.memory_allocated,
            "nested": lambda: torch.cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"],
            "mem_get_info": torch.cuda.mem_get_info,
            "a CPU tensor": lambda: float(kept.sum()),
            "is_available": torch.cuda.is_available,
        }.items():
            with r.step(what) as found:
                found["value"] = str(ask())[:100]
        r.say(recorders=recorders())
        for second in (5, 10, 15):
            time.sleep(5)
            r.say(still_alive_after=second)
        with r.step("abort"):
            abort_by("product")
        with r.step("leave"):
            r.leave()

    lab.say(case="as the product sets it", codes=start_ranks(lab, 1, rank).wait(40))


@experiment(60, "Memory: what torch, the driver and NVML say for one process; out of memory; another holder.",
            "driver = reserved + a constant (context, NCCL); the OOM text names the numbers")  # fmt: skip
def memory(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch

        if r.lab.dry:
            return
        r.say(step="before CUDA", smi=device_state(), pid=os.getpid())
        torch.cuda.set_device(r.device)
        r.ones()
        r.say(step="context", smi=device_state(), used_mib=r.used_mib(), reserved=torch.cuda.memory_reserved() >> 20)
        with r.step("torch.cuda.device_memory_used, list_gpu_processes") as found:
            found["value"] = [torch.cuda.device_memory_used() >> 20, torch.cuda.list_gpu_processes()]
        x = torch.ones(1 << 30, dtype=torch.uint8, device=r.device)
        r.say(step="1 GiB", smi=device_state(), used_mib=r.used_mib(), reserved=torch.cuda.memory_reserved() >> 20)
        r.join()
        r.all_reduce()
        r.say(step="NCCL", smi=device_state(), used_mib=r.used_mib())
        try:
            y = torch.empty(1 << 40, dtype=torch.uint8, device=r.device)
            del y
        except Exception as err:
            r.say(step="1 TiB", got=error_text(err), type=[base.__name__ for base in type(err).__mro__])
        held: list[Any] = []
        try:
            while True:
                held.append(torch.empty(4 << 30, dtype=torch.uint8, device=r.device))
        except Exception as err:
            r.say(step="4 GiB at a time", number=len(held), got=error_text(err), used_mib=r.used_mib())
        r.flag("full")
        r.await_flag("asked", 20)
        held.clear()
        del x
        with r.step("empty_cache") as found:
            torch.cuda.empty_cache()
            found["used_mib"] = r.used_mib()
            found["reserved"] = torch.cuda.memory_reserved() >> 20
        with r.step("all_reduce after it") as found:
            found["value"] = r.all_reduce()

    def other(r: Rank) -> None:
        import torch

        if not r.lab.dry:
            r.await_flag("full", 30)
            try:
                torch.ones(4 << 30, dtype=torch.uint8, device=r.device)
            except Exception as err:
                r.say(step="in another process", got=error_text(err))
        r.flag("asked")

    first = start_ranks(lab, 1, rank)
    second = start_ranks(lab, 1, other)
    lab.say(codes=[first.wait(50), second.wait(5)])


@experiment(60, "Illegal access and device-side assert: which Xid does NVML report, and what does torch raise and print?",
            "an event with a number for each; a text that the product knows")  # fmt: skip
def xid(lab: Lab) -> None:
    def listener() -> None:
        import pynvml

        pynvml.nvmlInit()
        events = pynvml.nvmlEventSetCreate()
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            lab.say(supported=pynvml.nvmlDeviceGetSupportedEventTypes(handle))
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
        lab.say(listens=True)
        (lab.folder / "flag-listens").touch()
        deadline = time.monotonic() + 25
        while time.monotonic() < deadline and not (lab.folder / "flag-over").exists():
            try:
                event = pynvml.nvmlEventSetWait_v2(events, 500)
            except pynvml.NVMLError_Timeout:
                continue
            lab.say(event={name: str(getattr(event, name)) for name, _ in event._fields_})

    def rank(r: Rank) -> None:
        import torch

        r.await_flag("listens", 10)
        if r.lab.dry:
            return
        torch.cuda.set_device(r.device)
        with r.step("begin") as found:
            found["value"] = float(r.ones().sum().item())
        with r.step(r.lab.folder.name if r.world > 1 else "fault") as found:
            if (r.lab.folder / "flag-illegal").exists():
                kernel = torch.cuda._compile_kernel(
                    'extern "C" __global__ void bad(int* p) { p[1LL << 40] = 1; }', "bad"
                )
                kernel((1, 1, 1), (1, 1, 1), (torch.zeros(1, dtype=torch.int32, device=r.device),))
            else:
                torch._assert_async(torch.zeros(1, device=r.device))
            torch.cuda.synchronize()
            found["value"] = "no error"
        time.sleep(1.5)

    child = os.fork()
    if child == 0:
        try:
            listener()
        except Exception as err:
            lab.say(listener=error_text(err))
        os._exit(0)
    for case in ("assert", "illegal"):
        if case == "illegal":
            (lab.folder / "flag-illegal").touch()
        lab.say(case=case, codes=start_ranks(lab, 1, rank).wait(20))
    (lab.folder / "flag-over").touch()
    reap(lab, child, 5, "listener")


@experiment(60, "1 GiB from the device and back: pageable, pinned, in chunks through two pinned buffers; what pinning costs.",
            "GB/s of each; which chunk is best")  # fmt: skip
def staging(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch

        size = 1 << 20 if r.lab.dry else 1 << 30
        value = torch.ones(size, dtype=torch.uint8, device=r.device)
        r.sync()
        if r.lab.dry:
            return

        def timed(what: str, run: Callable[[], Any]) -> Any:
            best, kept = [], None
            for _ in range(3):
                r.sync()
                begun = time.monotonic()
                kept = run()
                r.sync()
                best.append(round(time.monotonic() - begun, 4))
            r.say(what=what, seconds=best)
            return kept

        pageable = timed("cpu()", value.cpu)
        pinned = timed("empty pinned", lambda: torch.empty(size, dtype=torch.uint8, pin_memory=True))
        timed("into pinned", lambda: pinned.copy_(value, non_blocking=True))
        timed("pinned to pageable", lambda: pageable.copy_(pinned))
        timed("into pageable", lambda: pageable.copy_(value))
        timed("from pageable", lambda: value.copy_(pageable))
        timed("from pinned", lambda: value.copy_(pinned, non_blocking=True))
        path = r.lab.folder / "shared"
        with path.open("w+b") as file, open("/dev/shm/kit-staging", "w+b") as shm:
            os.unlink("/dev/shm/kit-staging")
            for label, one in (("file of /tmp", file), ("file of /dev/shm", shm)):
                timed(
                    f"write() of pageable to a {label}",
                    lambda one=one: os.pwrite(one.fileno(), memoryview(pageable.numpy()), 0),
                )
                mapped = mmap.mmap(one.fileno(), size)
                tensor = torch.frombuffer(mapped, dtype=torch.uint8)
                timed(f"device to a mapped {label}", lambda tensor=tensor: tensor.copy_(value))
                timed(f"from a mapped {label} to the device", lambda tensor=tensor: value.copy_(tensor))
                if one is shm:
                    begun = time.monotonic()
                    code = torch.cuda.cudart().cudaHostRegister(tensor.data_ptr(), size, 0)
                    r.say(
                        what="cudaHostRegister of /dev/shm", code=str(code), seconds=round(time.monotonic() - begun, 4)
                    )
                    timed("device to registered /dev/shm", lambda tensor=tensor: tensor.copy_(value, non_blocking=True))
                    torch.cuda.cudart().cudaHostUnregister(tensor.data_ptr())
        for mib in (4, 16, 64):
            buffers = [torch.empty(mib << 20, dtype=torch.uint8, pin_memory=True) for _ in range(2)]

            def down(buffers: list[Any] = buffers, step: int = mib << 20) -> None:
                events = [torch.cuda.Event() for _ in buffers]
                count = size // step
                for number in range(count + 1):
                    if number < count:
                        buffers[number % 2].copy_(value[number * step : (number + 1) * step], non_blocking=True)
                        events[number % 2].record()
                    if number:
                        events[(number - 1) % 2].synchronize()
                        pageable[(number - 1) * step : number * step].copy_(buffers[(number - 1) % 2])

            timed(f"down in chunks of {mib} MiB", down)

    lab.say(codes=start_ranks(lab, 1, rank).wait(50))


@experiment(60, "CUDA graphs: does asking the recorder every 50 ms from a side thread break a capture?",
            "captures of torch and of an all_reduce go through in every mode")  # fmt: skip
def graphs(lab: Lab) -> None:
    def rank(mode: str, collective: bool, what: str) -> Callable[[Rank], None]:
        def run(r: Rank) -> None:
            import torch
            import torch.distributed as dist

            r.join()
            value = r.ones()
            dist.all_reduce(value)
            r.sync()
            over, asked, failures = threading.Event(), [0], []

            def ask() -> None:
                while not over.wait(0.05):
                    try:
                        if what == "recorder":
                            recorders()
                        elif what == "mem_get_info" and not r.lab.dry:
                            torch.cuda.mem_get_info(r.device)
                        asked[0] += 1
                    except Exception as err:
                        failures.append(error_text(err))

            threading.Thread(target=ask, daemon=True).start()
            with r.step("capture", mode=mode, collective=collective, asks=what) as found:
                if not r.lab.dry:
                    graph = torch.cuda.CUDAGraph()
                    x = r.ones(1024)
                    torch.cuda.synchronize()
                    with torch.cuda.graph(graph, capture_error_mode=mode):
                        begun = time.monotonic()
                        while time.monotonic() - begun < 1.0:
                            x = x * 1.0
                            if collective:
                                dist.all_reduce(x)
                                time.sleep(0.05)
                            time.sleep(0.002)
                    graph.replay()
                    torch.cuda.synchronize()
                    found["value"] = float(x[0].item())
            over.set()
            r.say(mode=mode, collective=collective, asks=what, asked=asked[0], failures=failures[:2])

        return run

    for mode, collective, what in (
        ("global", False, "recorder"), ("global", False, "mem_get_info"), ("global", True, "recorder"),
        ("thread_local", True, "recorder"), ("thread_local", False, "mem_get_info"), ("global", True, "nothing"),
    ):  # fmt: skip
        lab.say(
            mode=mode,
            collective=collective,
            asks=what,
            codes=start_ranks(lab, 1, rank(mode, collective, what)).wait(15),
        )
        clean(lab)


@experiment(60, "CUDA_VISIBLE_DEVICES by UUID, twice the same, none; MIG; what torch sees.",
            "a UUID works; the same twice shows none; an empty one shows none")  # fmt: skip
def visible(lab: Lab) -> None:
    import torch

    uuids = [line.split("UUID: ")[1].rstrip(")") for line in nvidia_smi("-L") if "UUID: GPU" in line] or ["GPU-none"]
    lab.say(smi=nvidia_smi("-L"))
    for value in (None, "0", uuids[0], uuids[0][:12], "0,0", "", "-1", "7", "0,7"):
        pid = os.fork()
        if pid == 0:
            try:
                if value is not None:
                    os.environ["CUDA_VISIBLE_DEVICES"] = value
                got: Any = [torch.cuda.device_count(), torch.cuda.is_available()]
                if torch.cuda.is_available() and not lab.dry:
                    got += [float(torch.ones(1, device="cuda:0").item()), str(torch.cuda.get_device_properties(0).uuid),
                            torch.cuda.device_count()]  # fmt: skip
            except BaseException as err:
                got = error_text(err)
            lab.say(case=value, got=got)
            os._exit(0)
        reap(lab, pid, 15, str(value))


@experiment(40, "What names do kernels of collectives have in torch's profile?", "ncclDevKernel_...")
def profile(lab: Lab) -> None:
    def rank(r: Rank) -> None:
        import torch.distributed as dist
        from torch.profiler import ProfilerActivity
        from torch.profiler import profile as torch_profile

        r.join()
        r.all_reduce()
        kinds = [ProfilerActivity.CPU] + ([] if r.lab.dry else [ProfilerActivity.CUDA])
        with r.step("profile") as found, torch_profile(activities=kinds) as profiler:
            for _ in range(3):
                value = r.ones(1 << 20)
                dist.all_reduce(value)
                dist.broadcast(value, 0)
                value @ value
            r.sync()
        path = r.lab.folder / f"trace{r.rank}.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
        wanted = [
            event for event in events if "nccl" in str(event.get("name")).lower() or "gloo" in str(event.get("name"))
        ]
        seen: dict[str, Any] = {}
        for event in wanted:
            seen.setdefault(f"{event.get('cat')}: {event['name'][:80]}", event.get("args"))
        found["names"] = seen
        r.say(names=seen, categories=sorted({str(event.get("cat")) for event in events}))

    lab.say(codes=start_ranks(lab, 2, rank).wait(35))


@experiment(60, "Is a process that did this still good for forking ranks that use the device?",
            "import, is_available (with PYTORCH_NVML_BASED_CUDA_CHECK) and NVML: yes; cuInit: no")  # fmt: skip
def fork_safety(lab: Lab) -> None:
    import torch

    def cu_init() -> Any:
        return ctypes.CDLL("libcuda.so.1").cuInit(0)

    def nvml() -> Any:
        import pynvml

        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetCount()

    def with_nvml(ask: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
            return ask()

        return run

    cases: dict[str, Callable[[], Any]] = {
        "import torch": lambda: None,
        "is_available, by NVML": with_nvml(torch.cuda.is_available),
        "is_available": torch.cuda.is_available,
        "device_count, by NVML": with_nvml(torch.cuda.device_count),
        "device_count": torch.cuda.device_count,
        "pynvml": nvml,
        "config.show": torch.__config__.show,
        "import triton": lambda: __import__("triton").__version__,
        "import torch._dynamo": lambda: __import__("torch._dynamo") and None,
        "a matmul on the CPU": lambda: float((torch.ones(64, 64) @ torch.ones(64, 64)).sum()),
        "cuInit": cu_init,
        "a CUDA tensor": lambda: torch.ones(1, device="cpu" if lab.dry else "cuda").item(),
    }

    def child(case: str, ask: Callable[[], Any]) -> None:
        value: Any = None
        try:
            value = str(ask())[:100]
        except Exception as err:
            value = error_text(err)
        threads = Path("/proc/self/status").read_text().split("Threads:")[1].split()[0]
        count, probe = ctypes.c_int(-1), None
        with contextlib.suppress(OSError):
            # 3 is CUDA_ERROR_NOT_INITIALIZED: nobody has called cuInit in this process.
            probe = ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))
        seen = {"is_initialized": torch.cuda.is_initialized(), "cuDeviceGetCount": probe, "threads": threads}
        forked = time.monotonic()
        pid = os.fork()
        if pid == 0:
            try:
                x = torch.ones(4, device="cpu" if lab.dry else "cuda:0")
                got: Any = float(x.sum().item())
            except BaseException as err:
                got = error_text(err)
            lab.say(case=case, value=value, **seen, in_child=got,
                    seconds_to_first_kernel=round(time.monotonic() - forked, 3),
                    in_bad_fork=torch.cuda._is_in_bad_fork())  # fmt: skip
            os._exit(0)
        os.waitpid(pid, 0)

    for case, ask in cases.items():
        pid = os.fork()
        if pid == 0:
            child(case, ask)
            os._exit(0)
        reap(lab, pid, 12.0, case)


def reap(lab: Lab, pid: int, seconds: float, case: str) -> int | None:
    """Wait for one child; kill it if it is late."""
    deadline = time.monotonic() + min(seconds, max(1.0, lab.left - 1))
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    lab.say(case=case, failed="late: killed")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None
