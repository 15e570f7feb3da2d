"""Plain calls of the API. Made by `make generate` from jupyter_dist/protocol/operations: edit that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from jupyter_dist.client.answers import infos
from jupyter_dist.client.answers.base import ApiList, listed
from jupyter_dist.client.results.comparing import VariableComparison
from jupyter_dist.client.results.result import Result
from jupyter_dist.protocol.parts import of_part

from .calling import Caller, GroupCaller

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from jupyter_dist.client.answers import infos
    from jupyter_dist.client.answers.base import ApiList, listed
    from jupyter_dist.client.answers.keywords import RunOptions
    from jupyter_dist.client.ofparts import CaughtUp, CellDrift, CurveTable, Restored, Step, VariableTable
    from jupyter_dist.client.results.result import Result


class PlainAsyncClient(Caller):
    """Methods of AsyncClient that make one request each."""

    async def versions(self) -> infos.VersionsInfo:
        """Return the versions of the server, of its protocol and of its API."""
        return infos.VersionsInfo(await self._call("versions"))

    async def environments(self) -> infos.EnvironmentsInfo:
        """Return the environments that groups can run in."""
        return infos.EnvironmentsInfo(await self._call("environments"))

    async def warm(self, name: str) -> None:
        """Keep an agent with torch imported ready for the next start in an environment.

        Args:
            name: An environment's name.
        """
        await self._call("warm", name, body={})

    async def devices(self) -> infos.DevicesInfo:
        """Return the accelerators and the host, and how they are used."""
        return infos.DevicesInfo(await self._call("devices"))

    async def launchers(self) -> ApiList[infos.LauncherStatusInfo]:
        """Return the launchers that can start the nodes of a group, with what is free."""
        return listed(infos.LauncherStatusInfo, (await self._call("launchers"))["launchers"])

    async def presets(self) -> ApiList[infos.PresetInfo]:
        """Return the presets: named options of a start, which an administrator or the user has written."""
        return listed(infos.PresetInfo, (await self._call("presets"))["presets"])

    async def start_options(self) -> ApiList[infos.StartOptionRowInfo]:
        """Return the options of a start that a form can show by their rows alone, with the server's defaults.

        Where a group runs is not among them: see environments, devices, launchers.
        """
        return listed(infos.StartOptionRowInfo, (await self._call("start_options"))["options"])

    async def prepared(self) -> ApiList[infos.PreparedProcessInfo]:
        """Return the processes that are kept to make the next start faster, with their memory."""
        return listed(infos.PreparedProcessInfo, (await self._call("prepared"))["processes"])

    async def all_saves(self, folder: str | None = None) -> ApiList[infos.SaveInfo]:
        """Return the saves in a folder, newest first.

        Another folder than the server's takes the right to execute.

        Args:
            folder: A folder of saves: absolute, or relative to the server's root; default: the server's.
        """
        return listed(infos.SaveInfo, (await self._call("all_saves", query={"folder": folder}))["saves"])

    async def last_saves(self, group: str | None = None) -> list[infos.LastSaveInfo]:
        """Return the newest save of each group and number of ranks, also of groups that have ended.

        Args:
            group: The name of a group; by default all.
        """
        return infos.LastSavesInfo(await self._call("last_saves", query={"group": group})).saves

    async def delete_save(self, save: str, folder: str | None = None) -> infos.DeletedSaveInfo:
        """Delete a save, and the data that no other save of its folder has.

        Args:
            save: The name of a save.
            folder: A folder of saves: absolute, or relative to the server's root; default: the server's.
        """
        return infos.DeletedSaveInfo(await self._call("delete_save", save, query={"folder": folder}))


class PlainAsyncGroup(GroupCaller):
    """Methods of AsyncGroup that make one request each."""

    async def verdicts(self) -> infos.VerdictsInfo:
        """Return the verdicts on cells that cannot end or are slow, and what happened afterwards.

        Each has its witnesses. A refuted one is a fault of jupyter_dist: please report it with this answer.
        """
        return infos.VerdictsInfo(await self._call("verdicts"))

    async def interrupt(self, ranks: str = "all") -> infos.InterruptedInfo:
        """Interrupt running cells; the ranks keep their variables.

        Args:
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        return infos.InterruptedInfo(await self._call("interrupt", body={"ranks": ranks}))

    async def stacks(self) -> ApiList[infos.RankStackInfo]:
        """Return the Python stacks of all ranks, equal ones once.

        Ranks that do not answer within 2 s are `unknown`.
        """
        return listed(infos.RankStackInfo, (await self._call("stacks"))["stacks"])

    async def history(self, number: int = 500) -> ApiList[infos.HistoryCellInfo]:
        """Return the last cells of all clients that ran on this group, oldest first, with their code.

        Cells that a program ran silently, and calls, which are no code of users, are left out.

        Args:
            number: How many cells. Together at most 4 MiB of code.
        """
        return listed(infos.HistoryCellInfo, (await self._call("history", query={"number": number}))["cells"])

    async def logs(
        self, rank: int, tail_bytes: int = 262144, before: int | None = None
    ) -> ApiList[infos.LogRecordInfo]:
        """Return the last records of a rank's log, or the last ones before a given record.

        Args:
            rank: A rank.
            tail_bytes: Bytes of records, up to 8388608.
            before: Only records before this one.
        """
        return listed(
            infos.LogRecordInfo,
            (await self._call("logs", rank, query={"tail_bytes": tail_bytes, "before": before}))["records"],
        )

    async def executions(self) -> ApiList[infos.ExecutionInfo]:
        """Return the executions of the group, newest last."""
        return listed(infos.ExecutionInfo, (await self._call("executions"))["executions"])

    async def checks(self, execution_id: str | None = None) -> infos.CellChecksInfo:
        """Return the checks of a cell: errors of its training that its ranks have proved.

        Ranks are compared in the first steps of each optimizer, and then in ever fewer.

        Args:
            execution_id: An execution; by default the last cell that began.
        """
        return infos.CellChecksInfo(await self._call("checks", execution_id or await self.last_begun()))

    async def check(self, name: str) -> VariableComparison:
        """Compare all that a model trains with between ranks, whole and now.

        Parameters, buffers, optimizers, samplers and random states. Ranks that run a cell are not asked.

        Args:
            name: A variable that is a torch.nn.Module.
        """
        return VariableComparison(await self._call("check", query={"name": name}))

    async def set_checks(self, on: bool) -> infos.ChecksSwitchInfo:
        """Switch the checks of a group's training on or off.

        Args:
            on: False: ranks observe nothing, from the next step on.
        """
        return infos.ChecksSwitchInfo(await self._call("set_checks", body={"on": on}))

    async def curves(self, execution_id: str | None = None) -> CurveTable:
        """Return the curves of an execution: numbers with a name that recur in the output of its ranks.

        All lines so far are read, including lines that the view leaves out.

        Args:
            execution_id: An execution; by default the last cell that began.
        """
        found: CurveTable = of_part("curves").CurveTable(
            await self._call("curves", execution_id or await self.last_begun())
        )
        return found

    async def drift(self) -> CellDrift:
        """Return the versions of cells that ran on ranks since the last restart, and which ranks missed them."""
        found: CellDrift = of_part("drift").CellDrift(await self._call("drift"))
        return found

    async def peek_values(self, names: str | None = None, ranks: str = "all") -> infos.PeekedInfo:
        """Return the values of names on ranks, also while these run a cell.

        Local names come before names of cells. Of devices only shapes are read; no code of the user runs.

        Args:
            names: Names such as `loss`, `model.weight` or `state['lr']`, with commas between them; empty: the
                names of the function that runs.
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        return infos.PeekedInfo(await self._call("peek_values", query={"names": names, "ranks": ranks}))

    async def preview_save(self) -> infos.SavePreviewInfo:
        """Return the names that a save would have now, and the names that cannot be saved."""
        return infos.SavePreviewInfo(await self._call("preview_save"))

    async def saves(self, folder: str | None = None) -> ApiList[infos.SaveInfo]:
        """Return the saves in a folder, newest first, and why this group cannot restore some of them.

        Another folder than the server's takes the right to execute.

        Args:
            folder: A folder of saves: absolute, or relative to the server's root; default: the server's.
        """
        return listed(infos.SaveInfo, (await self._call("saves", query={"folder": folder}))["saves"])

    async def script(self, notebook: str | None = None, cells: str | None = None) -> infos.ScriptInfo:
        """Return the cells of a notebook that ran on ranks as a script for torchrun.

        Args:
            notebook: The path of the notebook, or its last parts; by default the only one.
            cells: The notebook's code cells as JSON, [{id, source}]: cells that did not run on ranks become
                comments.
        """
        return infos.ScriptInfo(await self._call("script", body={"notebook": notebook, "cells": cells}))

    async def pace(self, execution_id: str | None = None) -> infos.PaceInfo:
        """Return where the time of a cell goes, or went: by rank, by line and by step, and why it is slow.

        Cells that run for less than four seconds are not watched.

        Args:
            execution_id: An execution; by default the last cell that began.
        """
        return infos.PaceInfo(await self._call("pace", execution_id or await self.last_begun()))

    async def undoable(self) -> ApiList[infos.UndoableCellInfo]:
        """Return the cells that can be undone now, newest first, with their cost."""
        return listed(infos.UndoableCellInfo, (await self._call("undoable"))["cells"])

    async def variables(self, ranks: str = "all") -> VariableTable:
        """Return the variables of ranks, with their differences; ranks that run a cell are not asked.

        Args:
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        found: VariableTable = of_part("variables").VariableTable(await self._call("variables", query={"ranks": ranks}))
        return found

    async def compare(self, name: str, ranks: str = "all") -> VariableComparison:
        """Return where, on which ranks and by how much a variable differs, and what was not compared.

        Checksums are compared, then the elements of tensors that differ, a megabyte at a time and 64 MiB in all.

        Args:
            name: A variable, or a part of it by attributes and items: `model`, `model.layer.weight`,
                `states[0]`, `model.state_dict()`. Nothing is computed.
            ranks: A rank expression: all, 0, -1, 0-3, 0-3,7, ::2, !0.
        """
        return VariableComparison(await self._call("compare", body={"name": name, "ranks": ranks}))

    @property
    def keep_undo(self) -> bool:
        """Whether cells keep the state before them for `undo`, unless `run` is called with `keep_undo`; False."""
        return bool(self.run_options.get("keep_undo", False))

    @keep_undo.setter
    def keep_undo(self, value: bool) -> None:
        self.run_options.pop("keep_undo", None)
        if value:
            self.run_options["keep_undo"] = value

    async def curves_csv(self, execution_id: str | None = None) -> str:
        """Return every number of the curves of an execution as comma-separated values: curve, step, rank, value."""
        found: str = await of_part("curves", "asynchronous").curves_csv(self, execution_id)
        return found

    async def catch_up(self, steps: Sequence[Step] | None = None) -> CaughtUp:
        """Run cells on the ranks that have missed them, one after the other; return the results.

        A cell that calls a collective, and would wait for the other ranks, is not run, nor are cells that use
        names which it sets or changes: they are in `not_run` of the returned object.

        Args:
            steps: Steps of `drift()` to run; by default its `offered` ones, which replaced ranks have missed.

        Raises:
            CatchUpError: a cell failed; later cells did not run. Its `caught_up` has the results so far.
        """
        found: CaughtUp = await of_part("drift", "asynchronous").catch_up(self, steps)
        return found

    async def complete(self, code: str, cursor_pos: int | None = None, rank: int = 0) -> infos.CompletionInfo:
        """Complete code at the cursor (in characters; default: the end) on a rank: Jupyter's complete_reply.

        Raises:
            JupyterDistError: if the rank cannot answer at once.
        """
        found: infos.CompletionInfo = await of_part("introspection", "asynchronous").complete(
            self, code, cursor_pos, rank
        )
        return found

    async def inspect(
        self, code: str, cursor_pos: int | None = None, rank: int = 0, *, detail: int = 0
    ) -> infos.InspectionInfo:
        """Return a rank's documentation of the name at the cursor, as `name?` shows it; `name??` with `detail=1`.

        A rank that runs a cell answers at once: with `busy`, and only for functions, classes and modules.

        Raises:
            JupyterDistError: if the rank cannot answer at once.
        """
        found: infos.InspectionInfo = await of_part("introspection", "asynchronous").inspect(
            self, code, cursor_pos, rank, detail=detail
        )
        return found

    async def park(self, to: Literal["host", "file"] = "host", folder: str | None = None) -> Self:
        """Give the devices of an idle group back; its ranks keep all variables, and the next cell resumes it.

        Args:
            to: Where tensors go: `host`, the memory of the machine, or `file`, which also frees the memory of a
                group on CPU.
            folder: For `file`: an absolute path on the machine of the ranks; by default the group's folder.

        Raises:
            JupyterDistError: `group_not_ready`, if it is not idle, holds no devices, or there is no room.
        """
        await of_part("parking", "asynchronous").park(self, to, folder)
        return self

    async def resume(self) -> Self:
        """Bring the tensors of a parked group back to its devices, as a cell does, too; returns when it is ready.

        Raises:
            JupyterDistError: `group_not_ready`, if that failed; the group stays parked then, and keeps all variables.
        """
        await of_part("parking", "asynchronous").resume(self)
        return self

    async def peek(self, *names: str, ranks: str = "all") -> infos.PeekedInfo:
        """Return the values of names on ranks, also while these run a cell; without names, of the running function.

        Args:
            names: Names such as `loss`, `model.weight` or `state['lr']`.
            ranks: A rank expression.
        """
        found: infos.PeekedInfo = await of_part("peek", "asynchronous").peek(self, *names, ranks=ranks)
        return found

    async def profile(
        self, code: str, ranks: str = "all", *, trace: str | None = None, **options: Unpack[RunOptions]
    ) -> Result:
        """Run a cell under torch's profiler (%%profile) on all these ranks; `Result.profile` has the times.

        Args:
            code: The cell.
            ranks: A rank expression.
            trace: A path on this machine to write the merged trace to, for Perfetto.
            options: The options of RunOptions (docs/reference/python.md).
        """
        found: Result = await of_part("profile", "asynchronous").profile(self, code, ranks, trace=trace, **options)
        return found

    async def save_trace(self, result: Result, path: str) -> None:
        """Write the merged trace of a profiled cell into a file: a Chrome trace, with a process for each rank.

        Raises:
            JupyterDistError: `not_found`, if the cell was not profiled, or its trace is no longer kept.
        """
        await of_part("profile", "asynchronous").save_trace(self, result, path)

    async def resize(
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
        await of_part("resizing", "asynchronous").resize(self, num_ranks, others=others, devices=devices)
        return self

    async def save(
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
        found: infos.SaveInfo = await of_part("saves", "asynchronous").save(
            self, name, folder=folder, overwrite=overwrite, timeout_seconds=timeout_seconds
        )
        return found

    async def restore(
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
        found: Restored = await of_part("saves", "asynchronous").restore(
            self, name, folder=folder, rerun=rerun, any_version=any_version, timeout_seconds=timeout_seconds
        )
        return found

    async def undo(self, count: int = 1, executions: Sequence[str] | None = None) -> Result:
        """Undo the last cells that kept undo, on all ranks that ran them; returns when they are undone.

        Variables get the values of before the cells, in the same objects. Files, prints, the network and other
        processes are not undone. Waits its turn, as a cell does.

        Args:
            count: How many cells.
            executions: Instead: the ids of these executions, which must be the last kept ones on their ranks.

        Raises:
            JupyterDistError: `cannot_undo`, with the reason; nothing has been changed.
        """
        found: Result = await of_part("undo", "asynchronous").undo(self, count, executions)
        return found

    async def redoable(self) -> ApiList[infos.UndoableCellInfo]:
        """Return the undone cells that can be done again now, in this order."""
        found: ApiList[infos.UndoableCellInfo] = await of_part("undo", "asynchronous").redoable(self)
        return found

    async def redo(self, count: int = 1, executions: Sequence[str] | None = None) -> Result:
        """Give variables what undone cells had left in them; returns when they have it. No code runs.

        It is possible until a cell runs that changes something, or that keeps no undo. Waits its turn, as a cell does.

        Args:
            count: How many cells.
            executions: Instead: the ids of these executions, which must be the next undone ones on their ranks.

        Raises:
            JupyterDistError: `cannot_undo`, with the reason; nothing has been changed.
        """
        found: Result = await of_part("undo", "asynchronous").redo(self, count, executions)
        return found


class PlainAsyncExecution:
    """Methods of AsyncExecution that parts add."""

    async def undo(self) -> Result:
        """Undo the cell, on all ranks that ran it; returns when it is undone. See AsyncGroup.undo.

        Raises:
            JupyterDistError: `cannot_undo`, also if cells ran after it that are to be undone first.
        """
        found: Result = await of_part("undo", "execution").undo(self)
        return found

    async def redo(self) -> Result:
        """Give variables what the undone cell had left in them. See AsyncGroup.redo.

        Raises:
            JupyterDistError: `cannot_undo`, also if cells before it are to be done again first.
        """
        found: Result = await of_part("undo", "execution").redo(self)
        return found
