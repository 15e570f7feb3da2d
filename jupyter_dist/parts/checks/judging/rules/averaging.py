"""Errors of averaging: gradients, parameters or settings that differ between ranks that should have them alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from jupyter_dist.parts.checks.judging.seen import NUM_NEWEST, CommonStep, Seen, Trained, alike
from jupyter_dist.parts.checks.judging.words import Proof, listed, number, prove
from jupyter_dist.parts.checks.reports import Settings
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet

from .data import distributed_passes

NEVER_SYNCED_STEPS = 1024  # fewer may be local steps between averages of the parameters
LEAST_STEPS = 16  # of a cell that has ended
NEAR = 0.05
LEAST_ENDED = 4  # steps
PART_OF_STEPS = 0.5
PART = 0.5  # of the gradients, which are equal where a loop averages by hand


def find_gradients(seen: Seen) -> Iterator[Proof]:
    """Find gradients that differ though a wrapper, or the loop by hand, averages, or should."""
    for trained in seen.trained():
        if trained.model.kind == "ddp" and not trained.model.has_comm_hook:
            rows = [
                row
                for row in trained.rows()
                if [one.is_watched for one in trained.calls(row).values()] == [True] * len(row.looks)
            ]
            yield from _finding(trained, rows, _why(trained, rows))
    for trained in _averaged_by_hand(seen):
        yield from _finding(trained, trained.rows(), "layer_not_averaged")
    for trained in _of_all_ranks(seen):
        rows = trained.rows()
        newest = [look for row in rows[-NUM_NEWEST:] for look in row.looks.values()]
        if not rows or not _is_near(rows[0]):
            continue
        if all(look.reduced and not look.is_written for look in newest):
            yield from _finding(trained, rows, "loss_averaged")
        elif _are_alone(trained):
            yield from _finding(trained, rows, "not_averaged/alone")


def _are_alone(trained: Trained) -> bool:
    """Whether ranks that have divided their data by a DistributedSampler have communicated nothing in a whole cell."""
    count, ended = len(trained.model.averaging), trained.ended().values()
    passes = distributed_passes(trained.seen, trained.model.averaging).values()
    parts = {(one.distributed.rank, one.distributed.num_replicas) for one in passes if one.distributed is not None}
    has_ended = trained.seen.has_ended and all(one.is_alone and one.steps >= LEAST_STEPS for one in ended)
    return parts == {(at, count) for at in range(count)} and len(ended) == count and has_ended


def _finding(trained: Trained, rows: Sequence[CommonStep], kind: str | None) -> Iterator[Proof]:
    """Yield a proof if the gradients of the newest rows differ."""
    newest = rows[-NUM_NEWEST:]
    if kind is None or len(newest) < NUM_NEWEST or not all(map(_differing, newest)):
        return
    row = rows[-1]
    differ, of = _differing(row), len(row.first.gradients)
    name = trained.name_of(differ[0])
    values = {rank: look.gradients[differ[0]] for rank, look in row.looks.items()}
    evidence = [
        (row.step, rank, name, *((say("none"), "-") if one is None else (number(one.first), one.digest)))
        for rank, one in values.items()
    ]
    covered = say("all passes up to step %1", row.step)
    if any(one.num_synced for one in trained.calls(row).values()):
        covered = say("the last backward pass before the step")
    names = listed([trained.name_of(index) for index in differ])
    since = next(one.step for one in rows if _differing(one))
    proof = prove(kind, trained.model.averaging, (names, covered), evidence, (since, row.first.place))
    count = say("%1 of %2 compared gradients differ", len(differ), of)
    yield replace(proof, evidence=[*proof.evidence, count])


def _differing(row: CommonStep, of: str = "gradients") -> list[int]:
    """Return the numbers of the gradients, or of the weights, that differ between the ranks of a row."""
    found = []
    for index, values in enumerate(zip(*(getattr(look, of) for look in row.looks.values()), strict=False)):
        known = [value for value in values if value is not None]
        is_on_all = len(known) == len(values)
        if len({value.digest for value in known}) > 1 if is_on_all else any(value.varies for value in known):
            found.append(index)
    return found


def _why(trained: Trained, rows: Sequence[CommonStep]) -> str | None:
    """Return the kind of error that the calls of a DDP model show if its gradients differ; None: none."""
    if not rows:
        return None
    calls = trained.calls(rows[-1]).values()
    if all(one.outer == 0 for one in calls):
        return "inner_module"
    if all(not one.is_synced for one in calls):
        return "no_sync" if any(one.num_synced for one in calls) or _was_never_synced(trained, rows) else None
    return "changed_after_wrap" if len(_differing(rows[-1])) < len(rows[-1].first.gradients) else "not_averaged"


def _was_never_synced(trained: Trained, rows: Sequence[CommonStep]) -> bool:
    """Whether no pass has averaged anything, in many steps or in all of a cell that has ended; nor has other code."""
    if any(look.is_written for row in rows for look in row.looks.values()):
        return False
    if any(call.num_synced for row in rows for call in trained.calls(row).values()):
        return False
    if not trained.seen.has_ended:
        return rows[-1].step >= NEVER_SYNCED_STEPS
    ended = trained.ended().values()
    return bool(ended) and all(one.steps >= LEAST_STEPS and not one.num_synced and not one.is_written for one in ended)


def _is_near(row: CommonStep) -> bool:
    """Whether the parameters of all ranks are nearly alike, as after one step from the same ones."""
    pairs = zip(*(look.weights for look in row.looks.values()), strict=False)
    firsts = [[one.first for one in values if one is not None and one.first is not None] for values in pairs]
    near = [max(one) - min(one) <= NEAR * (1 + abs(max(one))) for one in firsts if one]
    return bool(near) and all(near) and len({str(look.settings) for look in row.looks.values()}) == 1


def _averaged_by_hand(seen: Seen) -> Iterator[Trained]:
    """Yield the models without a wrapper whose gradients are equal on all ranks although their batches differ.

    Equal gradients of different batches are averaged. Ranks of tensor parallelism get the same batch, separate models
    have other gradients.
    """
    for trained in _of_all_ranks(seen):
        rows = trained.rows()[-NUM_NEWEST:]
        if len(rows) == NUM_NEWEST and all(_is_averaged(trained, row) for row in rows):
            yield trained


def _of_all_ranks(seen: Seen) -> Iterator[Trained]:
    """Yield the models without a wrapper that all ranks of a cell train, as if they averaged something."""
    for optimizer, by_rank in seen.looks.items():
        ranks = tuple(sorted(by_rank))
        about = seen.about.get((optimizer, ranks[0])) if ranks else None
        if len(ranks) < 2 or ranks != seen.ranks or about is None or len(about.models) != 1:
            continue
        model = about.models[0]
        if model.kind == "plain" and not model.averaging:
            yield Trained(seen, optimizer, 0, model._replace(averaging=ranks, replicas=ranks), about)


def _is_averaged(trained: Trained, row: CommonStep) -> bool:
    batches = {batch.digest for batch in trained.batches(row).values()}
    if len(batches) < len(row.looks):
        return False
    varied = [
        index for index, value in enumerate(row.first.gradients) if value is not None and (value.varies or value.first)
    ]
    equal = set(varied) - set(_differing(row))
    return bool(equal) and len(equal) >= PART * len(varied)


def find_replicas(seen: Seen) -> Iterator[Proof]:
    """Find replicas that are not alike, or do not step alike."""
    by_hand = list(_averaged_by_hand(seen))
    for trained in [*seen.trained(), *by_hand]:
        yield from _settings_differ(trained)
        if len(trained.model.replicas) > 1 and not trained.model.has_comm_hook:
            yield from _replicas_differ(trained)
    if seen.has_ended:
        for trained in seen.trained():
            yield from _steps_less(trained)


def _replicas_differ(trained: Trained) -> Iterator[Proof]:
    """Find replicas with different parameters, or constant buffers, although their gradients are equal."""
    rows = trained.rows(trained.model.replicas)
    newest = rows[-NUM_NEWEST:]
    if len(newest) < NUM_NEWEST or any(_differing(row) or not _differing(row, "weights") for row in newest):
        return
    if any(_differing_settings({rank: look.settings for rank, look in row.looks.items()}) for row in rows):
        return  # what follows from them
    row, before = newest[1], newest[0]
    of = len(row.first.gradients)  # the parameters; buffers come after them
    differ = [index for index in _differing(row, "weights") if index < of]
    kept = [index for index in _differing(row, "weights") if index >= of and _is_constant(index, before, row)]
    if not differ and not kept:
        return
    first, *_ = shown = differ or kept
    since = next(one for one in rows if first in _differing(one, "weights"))
    name = trained.name_of(first)
    found = {rank: value for rank, look in row.looks.items() if (value := look.weights[first]) is not None}
    sets = alike({rank: value.digest for rank, value in found.items()})
    between = [str(RankSet(ranks)) for ranks in sets[:3]]
    values = (
        listed([trained.name_of(index) for index in shown]),
        say("%1 and %2", ", ".join(between[:-1]), between[-1]),
        say("from the begin") if since is rows[0] else say("since step %1", since.step),
    )
    evidence = [(row.step, ranks[0], name, number(found[ranks[0]].first), found[ranks[0]].digest) for ranks in sets]
    kind = "replicas_differ" if differ else "replicas_differ/buffers"
    proof = prove(kind, trained.model.replicas, values, evidence, (since.step, row.first.place))
    count = [say("%1 of %2 compared parameters differ", len(differ), of)] if differ else []
    yield replace(proof, evidence=[*proof.evidence, *count])


def _is_constant(index: int, before: CommonStep, after: CommonStep) -> bool:
    """Whether a buffer of each rank is unchanged: others, such as queues of samples, may differ on purpose."""
    pairs = ((before.looks[rank].weights[index:], look.weights[index:]) for rank, look in after.looks.items())
    return all(one[:1] == other[:1] for one, other in pairs)


def _settings_differ(trained: Trained) -> Iterator[Proof]:
    """Find optimizers of replicas with different settings, in the newest looks or once the cell has ended on all."""
    looks = trained.rows()
    rows = [(row.step, {rank: look.settings for rank, look in row.looks.items()}) for row in looks]
    ended = trained.ended()
    is_known = all(one.settings for one in ended.values())  # one rank may have dropped the optimizer already
    if looks and trained.seen.has_ended and is_known and len({one.steps for one in ended.values()}) == 1:
        rows.append((ended[min(ended)].steps, {rank: one.settings for rank, one in ended.items()}))
    if rows and (names := _differing_settings(rows[-1][1])):
        name, (step, by_rank) = names[0], rows[-1]
        since = next(at for at, settings in rows if _differing_settings(settings))
        words = {"lr": say("learning rate"), "weight_decay": say("weight decay")}.get(name, name)
        evidence = [(step, rank, name, _setting(settings, name)) for rank, settings in by_rank.items()]
        where = since, looks[-1].first.place
        yield prove("settings_differ", trained.model.averaging, (words, since), evidence, where)


def _differing_settings(by_rank: Mapping[int, Settings]) -> list[str]:
    """Return the names of the settings that differ between ranks."""
    names = dict.fromkeys(name for settings in by_rank.values() for group in settings for name in group)
    return [name for name in names if len({str(_setting(settings, name)) for settings in by_rank.values()}) > 1]


def _setting(settings: Settings, name: str) -> object:
    values = [group.get(name) for group in settings]
    return values[0] if len(set(map(str, values))) == 1 else values


def _steps_less(trained: Trained) -> Iterator[Proof]:
    """Find ranks that stepped less often than their peers, once the cell has ended on all."""
    seen, optimizer, ranks = trained.seen, trained.optimizer, trained.model.averaging
    if trained.model.kind != "ddp" or not set(ranks) <= set(seen.ranks):
        return
    found = trained.ended()
    ended = {rank: found[rank].steps if rank in found else 0 for rank in ranks}
    by_count = sorted(ended, key=lambda rank: ended[rank])
    most = ended[by_count[-1]]
    fewer = [rank for rank, count in ended.items() if count <= PART_OF_STEPS * most]
    if most >= LEAST_ENDED and fewer:
        evidence = [(rank, ended[rank]) for rank in (*by_count[:3], by_count[-1])]
        place = seen.looks[optimizer][by_count[-1]][-1].place
        yield prove("fewer_steps", fewer, (ended[fewer[0]], most), dict.fromkeys(evidence), (None, place))
