"""Plain methods of the blocking client. Made by `make generate` from client/asynchronous: edit that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from jupyter_dist.client.answers import infos
from jupyter_dist.client.answers.base import ApiList
from jupyter_dist.client.answers.infos import GroupInfo, InputAnsweredInfo, LogRecordInfo, MemorySampleInfo, RankInfo
from jupyter_dist.client.answers.keywords import ReplaceOptions, ReplaceState, RunOptions
from jupyter_dist.client.asynchronous.client import AsyncClient
from jupyter_dist.client.asynchronous.execution import GAP_SECONDS, AsyncExecution
from jupyter_dist.client.asynchronous.group import AsyncGroup
from jupyter_dist.client.blocking.loop import LoopThread
from jupyter_dist.client.results.comparing import VariableComparison
from jupyter_dist.client.results.result import Result
from jupyter_dist.client.results.samples import SampleSeries
from jupyter_dist.protocol.parts import of_part
from jupyter_dist.protocol.states import GroupState

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from jupyter_dist.client.answers import infos
    from jupyter_dist.client.answers.base import ApiList
    from jupyter_dist.client.answers.keywords import RunOptions
    from jupyter_dist.client.blocking.asking import Ask
    from jupyter_dist.client.displays.live import Show
    from jupyter_dist.client.ofparts import CaughtUp, CellDrift, CurveTable, Restored, Step, VariableTable
    from jupyter_dist.client.results.result import Result


class BlockingClient:
    """Plain methods of Client: each waits for the method of AsyncClient with its name."""

    _client: AsyncClient
    _loop: LoopThread

    def versions(self) -> infos.VersionsInfo:
        """Return the versions of the server, of its protocol and of its API."""
        return self._loop.run(self._client.versions())

    def environments(self) -> infos.EnvironmentsInfo:
        """Return the environments that groups can run in."""
        return self._loop.run(self._client.environments())

    def warm(self, name: str) -> None:
        """Keep an agent with torch imported ready for the next start in an environment.

        Args:
            name: An environment's name.
        """
        self._loop.run(self._client.warm(name))

    def devices(self) -> infos.DevicesInfo:
        """Return the accelerators and the host, and how they are used."""
        return self._loop.run(self._client.devices())

    def launchers(self) -> ApiList[infos.LauncherStatusInfo]:
        """Return the launchers that can start the nodes of a group, with what is free."""
        return self._loop.run(self._client.launchers())

    def presets(self) -> ApiList[infos.PresetInfo]:
        """Return the presets: named options of a start, which an administrator or the user has written."""
        return self._loop.run(self._client.presets())

    def start_options(self) -> ApiList[infos.StartOptionRowInfo]:
        """Return the options of a start that a form can show by their rows alone, with the server's defaults.

        Where a group runs is not among them: see environments, devices, launchers.
        """
        return self._loop.run(self._client.start_options())

    def prepared(self) -> ApiList[infos.PreparedProcessInfo]:
        """Return the processes that are kept to make the next start faster, with their memory."""
        return self._loop.run(self._client.prepared())

    def all_saves(self, folder: str | None = None) -> ApiList[infos.SaveInfo]:
        """Return the saves in a folder, newest first.

        Another folder than the server's takes the right to execute.

        Args:
            folder: A folder of saves: absolute, or relative to the server's root; default: the server's.
        """
        return self._loop.run(self._client.all_saves(folder))

    def last_saves(self, group: str | None = None) -> list[infos.LastSaveInfo]:
        """Return the newest save of each group and number of ranks, also of groups that have ended.

        Args:
            group: The name of a group; by default all.
        """
        return self._loop.run(self._client.last_saves(group))

    def delete_save(self, save: str, folder: str | None = None) -> infos.DeletedSaveInfo:
        """Delete a save, and the data that no other save of its folder has.

        Args:
            save: The name of a save.
            folder: A folder of saves: absolute, or relative to the server's root; default: the server's.
        """
        return self._loop.run(self._client.delete_save(save, folder))


class BlockingGroup:
    """Plain methods of Group: each waits for the method of AsyncGroup with its name."""

    _group: AsyncGroup
    _loop: LoopThread

    @property
    def id(self) -> str:
        """Return the id of the group, which is never reused."""
        return self._group.id

    @property
    def name(self) -> str:
        """Return the name that the user gave the group."""
        return self._group.name

    @property
    def world_size(self) -> int:
        """Return the number of ranks."""
        return self._group.world_size

    @property
    def num_nodes(self) -> int:
        """Return the number of machines that the ranks are on."""
        return self._group.num_nodes

    @property
    def state(self) -> GroupState:
        """Return the state of the group, as last received; `status()` requests it."""
        return self._group.state

    @property
    def ranks(self) -> ApiList[RankInfo]:
        """Return the ranks, as last received; `status()` requests them."""
        return self._group.ranks

    def status(self) -> GroupInfo:
        """Request the state of the group and its ranks: `state`, `ranks` and `model` are as new then."""
        return self._loop.run(self._group.status())

    def ready(self, show: Callable[[str], None] | None = None) -> Self:
        """Wait until the ranks of the group are ready.

        Args:
            show: Called with the news of a launcher while its engine finds nodes, each time these change.

        Raises:
            JupyterDistError: the start failed, or the group is gone or cannot be reached. `group_not_ready`, if its
                engine will not start its job as it was submitted.
        """
        self._loop.run(self._group.ready(show))
        return self

    def push(self, values: Mapping[str, Any], ranks: str = "all") -> None:
        """Set variables on ranks: any Python objects; arrays and tensors are not copied. On one machine only."""
        self._loop.run(self._group.push(values, ranks))

    def scatter(self, name: str, parts: Sequence[Any], ranks: str = "all") -> None:
        """Set variable `name` to the first part on the first rank, the second part on the second rank, and so on."""
        self._loop.run(self._group.scatter(name, parts, ranks))

    def broadcast(self, name: str, src: int = 0, ranks: str = "all") -> None:
        """Set variable `name` to its value on rank `src`, without passing through this process."""
        self._loop.run(self._group.broadcast(name, src, ranks))

    def pull(self, name: str, rank: int = 0, *, timeout_seconds: float | None = None) -> Any:
        """Return the value of a variable or any other expression on one rank.

        Raises:
            TimedOutError: the rank runs cells for longer; it does not evaluate the expression after that.
        """
        return self._loop.run(self._group.pull(name, rank, timeout_seconds=timeout_seconds))

    def gather(self, name: str, ranks: str = "all") -> dict[int, Any]:
        """Return the values of a variable or any other expression, by rank."""
        return self._loop.run(self._group.gather(name, ranks))

    def memory(self) -> MemorySampleInfo:
        """Return how much memory and processor each rank uses now.

        Raises:
            TimedOutError: the group's agent does not answer.
        """
        return self._loop.run(self._group.memory())

    def samples(self, seconds: float = 3600.0) -> SampleSeries:
        """Return the memory and processor of ranks in the last seconds, an hour at most.

        Samples are taken while a client follows the memory: a page with the sidebar or the timeline.
        """
        return self._loop.run(self._group.samples(seconds))

    def ask(self, operation: str, **arguments: Any) -> Any:
        """Make the request of an operation on the group; return its answer as JSON.

        For operations of parts of other packages, and for programs that want the server's own answer.

        Args:
            operation: The operation's name (docs/reference/http.md).
            arguments: The fields of its path, its body and its query.

        Raises:
            JupyterDistError: `bad_request`, if groups have no such operation; else the server's.
        """
        return self._loop.run(self._group.ask(operation, **arguments))

    def last_begun(self) -> str:
        """Return the id of the cell that began last. Raises JupyterDistError `unknown_execution` if none has."""
        return self._loop.run(self._group.last_begun())

    def restart(self, *, wait: bool = True) -> Self:
        """Restart all ranks in new processes; returns when they are ready, or at once, and cells wait for them."""
        self._loop.run(self._group.restart(wait=wait))
        return self

    def start_again(self, *, env: Mapping[str, str] | None = None, wait: bool = True) -> Self:
        """Start a group that has ended, with the options of its start; returns when it is ready, or at once.

        It begins without variables: no save is restored, also if the group began with one. `restore` does that.

        Args:
            env: variables of the start. Their values are stored nowhere: give them if the group's agent and its server
                have ended since.
            wait: whether to wait until the group is ready.

        Raises:
            JupyterDistError: `group_not_ready`, if it has not ended, or variables are missing; or the start failed.
        """
        self._loop.run(self._group.start_again(env=env, wait=wait))
        return self

    def replace(
        self,
        state: ReplaceState = "empty",
        *,
        others: Literal["leave", "copy"] = "leave",
        **options: Unpack[ReplaceOptions],
    ) -> Self:
        """Start new processes for dead ranks; other ranks keep theirs. Returns when the new ranks have joined.

        `model["replaced"]` lists the names that new ranks were given, and sentences on missing ones.

        Args:
            state: What new ranks begin with: a word of ReplaceState (docs/reference/python.md).
            others: For copies: `copy` takes also names that the others do not have alike. With a single other rank
                nothing can be compared, so it is required.
            options: Of the states of parts. For `save`: `save`, its name (by default the newest that the group can
                restore), `folder`, and `any_version`, whether to try a save of another version of Python.

        Raises:
            JupyterDistError: `start_failed`, if ranks are dead after that; `ranks_differ`, `not_found` or another error
                of a restore: nothing was changed, or the new ranks are there without their variables.
        """
        self._loop.run(self._group.replace(state, others=others, **options))
        return self

    def kill(self, rank: int) -> Self:
        """Kill a rank that cannot be interrupted; the others keep their variables. Then `replace` it."""
        self._loop.run(self._group.kill(rank))
        return self

    def reform(self) -> Self:
        """Re-create the process group in the same processes, which keep all variables; returns when all have joined.

        Raises:
            JupyterDistError: `group_not_ready`, if a cell is running, a rank is dead, or ranks could not join.
        """
        self._loop.run(self._group.reform())
        return self

    def empty_cache(self, ranks: str = "all") -> dict[int, int]:
        """Collect garbage and empty the device caches of idle ranks; return the freed bytes by rank."""
        return self._loop.run(self._group.empty_cache(ranks))

    def own(self, grace_seconds: float = 0.0) -> None:
        """Have a group that ends with processes live as long as this one, too; other groups are not changed."""
        self._loop.run(self._group.own(grace_seconds))

    def shutdown(self) -> list[str]:
        """End the group; return a sentence about each process that had to be killed."""
        return self._loop.run(self._group.shutdown())

    def follow_logs(self, rank: int, tail_bytes: int = 1 << 18) -> Iterator[ApiList[LogRecordInfo]]:
        """Yield the last records of a rank's log, then new ones, without end."""
        return self._loop.iterate(self._group.follow_logs(rank, tail_bytes))

    def verdicts(self) -> infos.VerdictsInfo:
        """Return the verdicts on cells that cannot end or are slow, and what happened afterwards.

        Each has its witnesses. A refuted one is a fault of jupyter_dist: please report it with this answer.
        """
        return self._loop.run(self._group.verdicts())

    def interrupt(self, ranks: str = "all") -> infos.InterruptedInfo:
        """Interrupt running cells; the ranks keep their variables.

        Args:
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        return self._loop.run(self._group.interrupt(ranks))

    def stacks(self) -> ApiList[infos.RankStackInfo]:
        """Return the Python stacks of all ranks, equal ones once.

        Ranks that do not answer within 2 s are `unknown`.
        """
        return self._loop.run(self._group.stacks())

    def history(self, number: int = 500) -> ApiList[infos.HistoryCellInfo]:
        """Return the last cells of all clients that ran on this group, oldest first, with their code.

        Cells that a program ran silently, and calls, which are no code of users, are left out.

        Args:
            number: How many cells. Together at most 4 MiB of code.
        """
        return self._loop.run(self._group.history(number))

    def logs(self, rank: int, tail_bytes: int = 262144, before: int | None = None) -> ApiList[infos.LogRecordInfo]:
        """Return the last records of a rank's log, or the last ones before a given record.

        Args:
            rank: A rank.
            tail_bytes: Bytes of records, up to 8388608.
            before: Only records before this one.
        """
        return self._loop.run(self._group.logs(rank, tail_bytes, before))

    def executions(self) -> ApiList[infos.ExecutionInfo]:
        """Return the executions of the group, newest last."""
        return self._loop.run(self._group.executions())

    def checks(self, execution_id: str | None = None) -> infos.CellChecksInfo:
        """Return the checks of a cell: errors of its training that its ranks have proved.

        Ranks are compared in the first steps of each optimizer, and then in ever fewer.

        Args:
            execution_id: An execution; by default the last cell that began.
        """
        return self._loop.run(self._group.checks(execution_id))

    def check(self, name: str) -> VariableComparison:
        """Compare all that a model trains with between ranks, whole and now.

        Parameters, buffers, optimizers, samplers and random states. Ranks that run a cell are not asked.

        Args:
            name: A variable that is a torch.nn.Module.
        """
        return self._loop.run(self._group.check(name))

    def set_checks(self, on: bool) -> infos.ChecksSwitchInfo:
        """Switch the checks of a group's training on or off.

        Args:
            on: False: ranks observe nothing, from the next step on.
        """
        return self._loop.run(self._group.set_checks(on))

    def curves(self, execution_id: str | None = None) -> CurveTable:
        """Return the curves of an execution: numbers with a name that recur in the output of its ranks.

        All lines so far are read, including lines that the view leaves out.

        Args:
            execution_id: An execution; by default the last cell that began.
        """
        return self._loop.run(self._group.curves(execution_id))

    def drift(self) -> CellDrift:
        """Return the versions of cells that ran on ranks since the last restart, and which ranks missed them."""
        return self._loop.run(self._group.drift())

    def peek_values(self, names: str | None = None, ranks: str = "all") -> infos.PeekedInfo:
        """Return the values of names on ranks, also while these run a cell.

        Local names come before names of cells. Of devices only shapes are read; no code of the user runs.

        Args:
            names: Names such as `loss`, `model.weight` or `state['lr']`, with commas between them; empty: the
                names of the function that runs.
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        return self._loop.run(self._group.peek_values(names, ranks))

    def preview_save(self) -> infos.SavePreviewInfo:
        """Return the names that a save would have now, and the names that cannot be saved."""
        return self._loop.run(self._group.preview_save())

    def saves(self, folder: str | None = None) -> ApiList[infos.SaveInfo]:
        """Return the saves in a folder, newest first, and why this group cannot restore some of them.

        Another folder than the server's takes the right to execute.

        Args:
            folder: A folder of saves: absolute, or relative to the server's root; default: the server's.
        """
        return self._loop.run(self._group.saves(folder))

    def script(self, notebook: str | None = None, cells: str | None = None) -> infos.ScriptInfo:
        """Return the cells of a notebook that ran on ranks as a script for torchrun.

        Args:
            notebook: The path of the notebook, or its last parts; by default the only one.
            cells: The notebook's code cells as JSON, [{id, source}]: cells that did not run on ranks become
                comments.
        """
        return self._loop.run(self._group.script(notebook, cells))

    def pace(self, execution_id: str | None = None) -> infos.PaceInfo:
        """Return where the time of a cell goes, or went: by rank, by line and by step, and why it is slow.

        Cells that run for less than four seconds are not watched.

        Args:
            execution_id: An execution; by default the last cell that began.
        """
        return self._loop.run(self._group.pace(execution_id))

    def undoable(self) -> ApiList[infos.UndoableCellInfo]:
        """Return the cells that can be undone now, newest first, with their cost."""
        return self._loop.run(self._group.undoable())

    def variables(self, ranks: str = "all") -> VariableTable:
        """Return the variables of ranks, with their differences; ranks that run a cell are not asked.

        Args:
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        return self._loop.run(self._group.variables(ranks))

    def compare(self, name: str, ranks: str = "all") -> VariableComparison:
        """Return where, on which ranks and by how much a variable differs, and what was not compared.

        Checksums are compared, then the elements of tensors that differ, a megabyte at a time and 64 MiB in all.

        Args:
            name: A variable, or a part of it by attributes and items: `model`, `model.layer.weight`,
                `states[0]`, `model.state_dict()`. Nothing is computed.
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        return self._loop.run(self._group.compare(name, ranks))

    @property
    def keep_undo(self) -> bool:
        """Whether cells keep the state before them for `undo`, unless `run` is called with `keep_undo`; False."""
        return self._group.keep_undo

    @keep_undo.setter
    def keep_undo(self, value: bool) -> None:
        self._group.keep_undo = value

    def curves_csv(self, execution_id: str | None = None) -> str:
        """Return every number of the curves of an execution as comma-separated values: curve, step, rank, value."""
        return self._loop.run(self._group.curves_csv(execution_id))

    def catch_up(self, steps: Sequence[Step] | None = None) -> CaughtUp:
        """Run cells on the ranks that have missed them, one after the other; return the results.

        A cell that calls a collective, and would wait for the other ranks, is not run, nor are cells that use
        names which it sets or changes: they are in `not_run` of the returned object.

        Args:
            steps: Steps of `drift()` to run; by default its `offered` ones, which replaced ranks have missed.

        Raises:
            CatchUpError: a cell failed; later cells did not run. Its `caught_up` has the results so far.
        """
        found: CaughtUp = of_part("drift", "blocking").catch_up(self, steps)
        return found

    def complete(self, code: str, cursor_pos: int | None = None, rank: int = 0) -> infos.CompletionInfo:
        """Complete code at the cursor (in characters; default: the end) on a rank: Jupyter's complete_reply.

        Raises:
            JupyterDistError: if the rank cannot answer at once.
        """
        return self._loop.run(self._group.complete(code, cursor_pos, rank))

    def inspect(
        self, code: str, cursor_pos: int | None = None, rank: int = 0, *, detail: int = 0
    ) -> infos.InspectionInfo:
        """Return a rank's documentation of the name at the cursor, as `name?` shows it; `name??` with `detail=1`.

        A rank that runs a cell answers at once: with `busy`, and only for functions, classes and modules.

        Raises:
            JupyterDistError: if the rank cannot answer at once.
        """
        return self._loop.run(self._group.inspect(code, cursor_pos, rank, detail=detail))

    def park(self, to: Literal["host", "file"] = "host", folder: str | None = None) -> Self:
        """Give the devices of an idle group back; its ranks keep all variables, and the next cell resumes it.

        Args:
            to: Where tensors go: `host`, the memory of the machine, or `file`, which also frees the memory of a
                group on CPU.
            folder: For `file`: an absolute path on the machine of the ranks; by default the group's folder.

        Raises:
            JupyterDistError: `group_not_ready`, if it is not idle, holds no devices, or there is no room.
        """
        self._loop.run(self._group.park(to, folder))
        return self

    def resume(self) -> Self:
        """Bring the tensors of a parked group back to its devices, as a cell does, too; returns when it is ready.

        Raises:
            JupyterDistError: `group_not_ready`, if that failed; the group stays parked then, and keeps all variables.
        """
        self._loop.run(self._group.resume())
        return self

    def peek(self, *names: str, ranks: str = "all") -> infos.PeekedInfo:
        """Return the values of names on ranks, also while these run a cell; without names, of the running function.

        Args:
            names: Names such as `loss`, `model.weight` or `state['lr']`.
            ranks: A rank expression.
        """
        return self._loop.run(self._group.peek(*names, ranks=ranks))

    def profile(
        self,
        code: str,
        ranks: str = "all",
        *,
        trace: str | None = None,
        stream: bool | Show = False,
        check: bool = False,
        ask: Ask | bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Run a cell under torch's profiler (%%profile) on all these ranks; `Result.profile` has the times.

        Args:
            code: The cell.
            ranks: A rank expression.
            trace: A path on this machine to write the merged trace to, for Perfetto.
            stream: As for `run`.
            check: As for `run`.
            ask: As for `run`.
            options: The options of RunOptions (docs/reference/python.md).
        """
        found: Result = of_part("profile", "blocking").profile(
            self, code, ranks, trace=trace, stream=stream, check=check, ask=ask, **options
        )
        return found

    def save_trace(self, result: Result, path: str) -> None:
        """Write the merged trace of a profiled cell into a file: a Chrome trace, with a process for each rank.

        Raises:
            JupyterDistError: `not_found`, if the cell was not profiled, or its trace is no longer kept.
        """
        self._loop.run(self._group.save_trace(result, path))

    def resize(
        self,
        num_ranks: int,
        *,
        others: Literal["refuse", "keep", "copy"] = "refuse",
        devices: Sequence[int] | None = None,
    ) -> Self:
        """Change the number of ranks; ranks that stay keep their processes and variables.

        New ranks get copies of the names that all others have alike. Returns when all ranks have joined the new process
        group; `model["resized"]` lists what was copied, and what cells must make again.

        Args:
            num_ranks: How many ranks there are to be.
            others: What happens to names that are not alike on all ranks. `refuse`: the group keeps its size.
                `keep`: new ranks lack them, and ranks that leave lose them. `copy`: new ranks get rank 0's.
            devices: The devices of new ranks; by default the first that the group does not use.

        Raises:
            JupyterDistError: the group has its earlier size and all variables: some names are not alike
                (`ranks_differ`), it cannot have another size now (`group_not_ready`, `bad_request`, `bad_devices`),
                or new ranks could not be started.
        """
        self._loop.run(self._group.resize(num_ranks, others=others, devices=devices))
        return self

    def save(
        self,
        name: str | None = None,
        *,
        folder: str | None = None,
        overwrite: bool = False,
        timeout_seconds: float | None = None,
    ) -> infos.SaveInfo:
        """Save the variables of all ranks, when the cells that were sent before have ended; return the save.

        Args:
            name: Its name; a save of this group with the name is replaced. By default the group's name and the time.
            folder: A folder on the server's machine; by default the server's own.
            overwrite: Whether to replace a save of another group with this name.
            timeout_seconds: How long it may take once it has begun; by default an hour.

        Raises:
            JupyterDistError: `not_saved`, with the reason; an earlier save with this name is as it was.
        """
        return self._loop.run(
            self._group.save(name, folder=folder, overwrite=overwrite, timeout_seconds=timeout_seconds)
        )

    def restore(
        self,
        name: str,
        *,
        folder: str | None = None,
        rerun: bool = False,
        any_version: bool = False,
        timeout_seconds: float | None = None,
    ) -> Restored:
        """Give all ranks the variables of a save, when the cells that were sent before have ended.

        Args:
            name: The name of a save; its group had as many ranks as this one.
            folder: The folder of the save, on the server's machine; by default the server's own.
            rerun: Whether to run the cells again that made what could not be saved.
            any_version: Whether to try it with another version of Python.
            timeout_seconds: How long it may take once it has begun; by default an hour.

        Raises:
            JupyterDistError: `not_restored`, with the reason, `not_found`, `cannot_restore`, ...; no rank is changed.
            RankError: a cell that was run again failed; the variables are restored.
        """
        return self._loop.run(
            self._group.restore(
                name, folder=folder, rerun=rerun, any_version=any_version, timeout_seconds=timeout_seconds
            )
        )

    def undo(self, count: int = 1, executions: Sequence[str] | None = None) -> Result:
        """Undo the last cells that kept undo, on all ranks that ran them; returns when they are undone.

        Variables get the values of before the cells, in the same objects. Files, prints, the network and other
        processes are not undone. Waits its turn, as a cell does.

        Args:
            count: How many cells.
            executions: Instead: the ids of these executions, which must be the last kept ones on their ranks.

        Raises:
            JupyterDistError: `cannot_undo`, with the reason; nothing has been changed.
        """
        return self._loop.run(self._group.undo(count, executions))

    def redoable(self) -> ApiList[infos.UndoableCellInfo]:
        """Return the undone cells that can be done again now, in this order."""
        return self._loop.run(self._group.redoable())

    def redo(self, count: int = 1, executions: Sequence[str] | None = None) -> Result:
        """Give variables what undone cells had left in them; returns when they have it. No code runs.

        It is possible until a cell runs that changes something, or that keeps no undo. Waits its turn, as a cell does.

        Args:
            count: How many cells.
            executions: Instead: the ids of these executions, which must be the next undone ones on their ranks.

        Raises:
            JupyterDistError: `cannot_undo`, with the reason; nothing has been changed.
        """
        return self._loop.run(self._group.redo(count, executions))


class BlockingExecution:
    """Plain methods of Execution: each waits for the method of AsyncExecution with its name."""

    _execution: AsyncExecution
    _loop: LoopThread

    @property
    def id(self) -> str:
        """Return the id of the execution."""
        return self._execution.id

    def peek(self, wait_seconds: float = 0) -> Result:
        """Return the result so far, or the final one if it ends within that time."""
        return self._loop.run(self._execution.peek(wait_seconds))

    def done(self) -> bool:
        """Whether the execution has ended."""
        return self._loop.run(self._execution.done())

    def result(self, timeout_seconds: float | None = None) -> Result:
        """Wait until the cell ends and return the result.

        Raises:
            TimedOutError: the cell is still running; wait again, or cancel it. The error is a TimeoutError, too.
            JupyterDistError: `server_gone`, if the server does not answer; `cancelled`, if the client is closed.
        """
        return self._loop.run(self._execution.result(timeout_seconds))

    def stream(self, gap_seconds: float = GAP_SECONDS) -> Iterator[Result]:
        """Yield the result so far, at most once per `gap_seconds`; the last one is `done`.

        If nothing new arrives for that time, the same result is yielded again, as complete for now.
        """
        return self._loop.iterate(self._execution.stream(gap_seconds))

    def answer(self, text: str | None, ranks: str | None = None, seq: int | None = None) -> InputAnsweredInfo:
        """Answer the question of ranks (`Result.asking`). Only a cell submitted with `allow_stdin=True` may ask.

        Args:
            text: A line; None is the end of input: the rank's code gets an EOFError.
            ranks: A rank expression; by default all ranks that ask, if they ask the same.
            seq: The number of the question: a question that comes later is not answered.

        Raises:
            JupyterDistError: `not_asking`, if the question has been answered; `rank_dead`, ...
        """
        return self._loop.run(self._execution.answer(text, ranks, seq))

    def extend(self, ranks: str = "all") -> None:
        """Run the cell, as it was submitted, on more ranks while it runs, if a collective in it waits for them.

        Ranks that already have the cell are skipped. `verdict["could_join"]` of a cell that cannot end names ranks.
        """
        self._loop.run(self._execution.extend(ranks))

    def cancel(self) -> None:
        """Remove the cell from the queue, or interrupt it; the ranks keep their variables."""
        self._loop.run(self._execution.cancel())

    def undo(self) -> Result:
        """Undo the cell, on all ranks that ran it; returns when it is undone. See AsyncGroup.undo.

        Raises:
            JupyterDistError: `cannot_undo`, also if cells ran after it that are to be undone first.
        """
        return self._loop.run(self._execution.undo())

    def redo(self) -> Result:
        """Give variables what the undone cell had left in them. See AsyncGroup.redo.

        Raises:
            JupyterDistError: `cannot_undo`, also if cells before it are to be done again first.
        """
        return self._loop.run(self._execution.redo())
