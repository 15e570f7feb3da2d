"""Common activities of all ranks as causes: loading data, saving, printing, compiling, waiting for files. Pure.

Where one rank alone does it, the others wait for that rank: see stragglers.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from jupyter_dist.parts.slow.agent.asking.reports import CodePlace
from jupyter_dist.parts.slow.agent.observed import LEAST_SAMPLES_OF_LOOK, Observed, RankPaceSeen
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet

from .causes import Cause, at_place, name_ranks, percent
from .stragglers import find_straggler

if TYPE_CHECKING:
    from jupyter_dist.parts.slow import models

from collections import defaultdict

from jupyter_dist.parts.slow.agent.asking.reports import Sampled
from jupyter_dist.parts.slow.agent.observed import RUN

from .causes import seconds_in_words

LEAST_INPUT = 0.3
LEAST_SAVING = 0.12
LEAST_PRINTING = 0.15
LEAST_COMPILING = 0.15
LEAST_OBJECTS = 0.12
LEAST_UNUSED = 0.1
LEAST_BLOCKED = 0.3
NUM_COMPILES = 6  # in the time that is judged: the first compilation of a model is several
LEAST_OF_NOW = 0.7  # of a share must be seen in the newest look
LEAST_OF_ALL = 0.6  # of the ranks must be found doing it


def find_input(seen: Observed) -> Cause | None:
    """Return the cause if ranks wait for data."""
    share = max(_share_of_all(seen, "input", "workers"), seen.path.share("input", "workers"))
    if share < LEAST_INPUT:
        return None
    starting = seen.median(lambda rank: rank.share("workers"))
    rank = _one(seen, "input", "workers")
    place = rank.main_place("workers" if starting > share / 2 else "input")
    inner = rank.inner_of("input")
    evidence = [say("The ranks are found in the DataLoader in %1 of the samples of their stacks.", percent(share))]
    if starting > share / 2:
        evidence.append(say("Most of that time it starts worker processes."))
        advice = say("Keep the workers from one epoch to the next: DataLoader(..., persistent_workers=True).")
    elif inner is not None:
        evidence.append(say("It loads in the rank itself, at %1.", inner))
        advice = say("Load in other processes: DataLoader(..., num_workers=4), or make loading cheaper.")
    else:
        advice = say("Use more workers (num_workers), a larger prefetch_factor, or make loading cheaper.")
    message = say("Input: %1 of the time ranks wait for the next batch%2.", percent(share), at_place(place))
    return Cause("input", RankSet(seen.ranks), share, message, evidence, advice, place)


_MAY_END = frozenset({"input", "workers", "print"})  # which must be found in the newest look, too


class _Habit(NamedTuple):
    kind: models.SlowKind
    activity: str
    least: float
    advice: str


_SAVING = _Habit(
    "saving",
    "save",
    LEAST_SAVING,
    say("Save less often, in another thread (torch.distributed.checkpoint.async_save), or a part on each rank."),
)
_PRINTING = _Habit("printing", "print", LEAST_PRINTING, say("Print every hundredth step, or track(loss=loss)."))


def find_saving(seen: Observed) -> Cause | None:
    """Return the cause if all ranks save for a large part of the time."""
    return _habit(seen, _SAVING)


def find_printing(seen: Observed) -> Cause | None:
    """Return the cause if all ranks print for a large part of the time."""
    return _habit(seen, _PRINTING)


def _habit(seen: Observed, habit: _Habit) -> Cause | None:
    share, of_path = _share_of_all(seen, habit.activity), seen.path.share(habit.activity)
    if max(share, of_path) < habit.least:
        return None
    place, ranks = _one(seen, habit.activity).main_place(habit.activity), RankSet(seen.ranks)
    evidence = [say("They are found there in %1 of the samples of their stacks.", percent(share))]
    if share < habit.least:  # some ranks, for which the others wait
        share, place = of_path, seen.path.main_place(habit.activity)
        ranks = RankSet(rank for rank, sampled in seen.path.samples if sampled.activity == habit.activity)
        evidence = [say("The rank that the others wait for next is found there in %1 of the samples.", percent(share))]
        if len(ranks) < len(seen.ranks) and find_straggler(seen) is not None:
            return None
    message = _of_habit(habit, None if ranks == RankSet(seen.ranks) else ranks, percent(share), at_place(place))
    return Cause(habit.kind, ranks, share, message, evidence, habit.advice, place)


def _of_habit(habit: _Habit, late: RankSet | None, share: str, place: str) -> str:
    """Return the sentence about a habit of all ranks, or of late ranks for which the others wait."""
    is_saving = habit is _SAVING
    if late is None:
        all_ranks = share, place
        return (
            say("The ranks save %1 of the time%2.", *all_ranks)
            if is_saving
            else say("The ranks print %1 of the time%2.", *all_ranks)
        )
    values = name_ranks(late), share, place
    if len(late) > 1:
        return (
            say("%1, for which the others wait, save %2 of the time%3.", *values)
            if is_saving
            else say("%1, for which the others wait, print %2 of the time%3.", *values)
        )
    return (
        say("%1, for which the others wait, saves %2 of the time%3.", *values)
        if is_saving
        else say("%1, for which the others wait, prints %2 of the time%3.", *values)
    )


def find_objects(seen: Observed) -> Cause | None:
    """Return the cause if ranks make messages of objects, and objects of messages, for a large part of the time."""
    share = objects_share(seen)
    if share < LEAST_OBJECTS:
        return None
    place = _one(seen, "objects").main_place("objects")
    message = say(
        "Objects are pickled and unpickled for other ranks %1 of the time%2.", percent(share), at_place(place)
    )
    evidence = [
        say("The ranks are found in torch's functions for it in %1 of the samples of their stacks.", percent(share))
    ]
    advice = say("Send tensors instead of objects (all_gather), fewer objects, or send them seldom.")
    return Cause("objects", RankSet(seen.ranks), share, message, evidence, advice, place)


def objects_share(seen: Observed) -> float:
    """Return which part of the time objects are pickled and unpickled for other ranks."""
    return max(_share_of_all(seen, "objects"), seen.path.share("objects"))


def find_compiling(seen: Observed) -> Cause | None:
    """Return the cause if torch compiles again and again, between steps that run."""
    share = _share_of_all(seen, "compile")
    number = seen.median(lambda rank: sum(report.num_compiles for report in rank.reports))
    if share < LEAST_COMPILING or number < NUM_COMPILES:
        return None
    place = _one(seen, "compile").main_place("compile")
    message = say("torch compiles again and again, %1 of the time%2.", percent(share), at_place(place))
    evidence = [
        say(
            "Compilations were found %1 times in the last seconds, with other code between them.", format(number, ".0f")
        )
    ]
    advice = say(
        "Give it the same shapes each step (padding), or torch.compile(..., dynamic=True). "
        "TORCH_LOGS=recompiles names the reason."
    )
    return Cause("compiling", RankSet(seen.ranks), share, message, evidence, advice, place)


def find_unused(seen: Observed) -> Cause | None:
    """Return the cause if DistributedDataParallel looks for unused parameters for a large part of the time."""
    share = _share_of_all(seen, "unused")
    if share < LEAST_UNUSED:
        return None
    place = _one(seen, "unused").main_place("unused")
    message = say(
        "DistributedDataParallel looks for unused parameters %1 of the time, after each forward pass%2.",
        percent(share),
        at_place(place),
    )
    evidence = [say("It is found walking through the outputs of the model in %1 of the samples.", percent(share))]
    advice = say(
        "Leave find_unused_parameters=True out if all parameters get gradients, or use "
        "static_graph=True; let forward() return tensors only."
    )
    return Cause("unused_parameters", RankSet(seen.ranks), share, message, evidence, advice, place)


def find_blocked(seen: Observed) -> Cause | None:
    """Return the cause if all ranks wait in the kernel for one line: for a file, a socket or a time."""
    if not seen.is_sampled:
        return None
    places: Counter[CodePlace] = Counter()
    for rank in seen.ranks.values():
        places.update(place for place in rank.blocked if place is not None)
    best, share = None, 0.0
    for place in places:
        shares = sorted(rank.blocked[place] / rank.num_samples for rank in seen.ranks.values())
        least = shares[int((1 - LEAST_OF_ALL) * len(shares))]
        if least > share:
            best, share = place, least
    if best is None or share < LEAST_BLOCKED or not seen.has_steps:
        return None
    message = say("The ranks wait %1 of the time, not for other ranks%2.", percent(share), at_place(best))
    evidence = [say("They are found in a system call there in %1 of the samples of their stacks.", percent(share))]
    advice = say("Do it less often or in a thread, or wait for less: a file, a network, a sleep.")
    return Cause("blocked", RankSet(seen.ranks), share, message, evidence, advice, best)


def _share_of_all(seen: Observed, *activities: str) -> float:
    """Return the share of activities that most ranks reach, also in the newest look; 0 if there are too few samples.

    A first epoch that fills a cache is over although it took much of the time until now.
    """
    if not seen.is_sampled:
        return 0.0
    newest = {rank: RankPaceSeen(its.reports[-1:]) for rank, its in seen.ranks.items()}
    share = _reached(seen.ranks.values(), activities)
    if not _MAY_END.intersection(activities) or any(its.num_samples < LEAST_SAMPLES_OF_LOOK for its in newest.values()):
        return share
    return min(share, _reached(newest.values(), activities) / LEAST_OF_NOW)


def _reached(ranks: Iterable[RankPaceSeen], activities: tuple[str, ...]) -> float:
    shares = sorted(sum(map(rank.share, activities)) for rank in ranks)
    return shares[int((1 - LEAST_OF_ALL) * len(shares))]


def _one(seen: Observed, *activities: str) -> RankPaceSeen:
    """Return the rank that is found most often in these activities."""
    return max(seen.ranks.values(), key=lambda rank: sum(map(rank.share, activities)))


# Of a step. What a line calls in C itself may be the work that the loop is for; what torch does in Python is.
LEAST = {"python": 0.2, "c": 0.4}
NEARLY = 0.8
LEAST_OF_ALL = 0.6  # of the ranks must be found there, if it is not known who waits for whom
LIKE_OTHERS = 0.3  # of the most that a rank is found there


class _Spent(NamedTuple):
    """What ranks spend at a line: as parts of the time, and as multiples of the least to be named."""

    shares: defaultdict[int, float]
    weights: defaultdict[int, float]


def _spent() -> _Spent:
    return _Spent(defaultdict(float), defaultdict(float))


def find_line(seen: Observed) -> Cause | None:
    """Return the line of Python code, or of a function in C, that takes the most of a step."""
    if not seen.has_steps or not seen.is_sampled:
        return None
    shares = _on_path(seen) if seen.path.is_known else _on_all(seen)
    most = max(shares.values(), default=0.0)
    # The innermost line that takes nearly as much as its caller, which takes the most.
    place = next((place for place, share in shares.items() if share >= NEARLY * most), None)
    if place is None:
        return None
    share = shares[place]
    message = say("%1 of the time is spent at %2.", percent(share), place)
    if (step := seen.step_seconds) is not None:
        part, whole = seconds_in_words(share * step), seconds_in_words(step)
        message = say("%1 of %2 a step are spent at %3.", part, whole, place)
    own = {rank: _own_share(its, place) for rank, its in seen.ranks.items()}
    ranks = RankSet(rank for rank in own if own[rank] >= LIKE_OTHERS * max(own.values()))
    evidence = [say("The rank that the others wait for next is found there in %1 of the samples.", percent(share))]
    if not seen.path.is_known:
        evidence = [say("The ranks are found there in %1 of the samples of their stacks.", percent(share))]
    advice = say("If the loop is not there for this: do it once before the loop, in a thread, or in other processes.")
    return Cause("line", ranks, share, message, evidence, advice, place)


def _on_path(seen: Observed) -> dict[CodePlace, float]:
    """Return the shares of the critical path that lines have, if they are large enough."""
    total = seen.path.samples.total()
    found: defaultdict[CodePlace, _Spent] = defaultdict(_spent)
    for (rank, sampled), number in seen.path.samples.items():
        _add(found, rank, sampled, number / total)
    return {place: sum(spent.shares.values()) for place, spent in found.items() if sum(spent.weights.values()) >= 1}


def _on_all(seen: Observed) -> dict[CodePlace, float]:
    """Return the shares of the time that lines have, if they are large enough on most ranks."""
    found: defaultdict[CodePlace, _Spent] = defaultdict(_spent)
    for rank, its in seen.ranks.items():
        for sampled in (one for report in its.reports for one in report.samples):
            _add(found, rank, sampled, sampled.number / its.num_samples)
    few = int((1 - LEAST_OF_ALL) * len(seen.ranks))  # ranks that may spend less there
    return {
        place: sum(spent.shares.values()) / len(seen.ranks)
        for place, spent in found.items()
        if sorted(spent.weights[rank] for rank in seen.ranks)[few] >= 1
    }


def _add(found: defaultdict[CodePlace, _Spent], rank: int, sampled: Sampled, share: float) -> None:
    """Add samples to their line and to the line of its caller: several lines of a function may take the time."""
    if sampled.activity != RUN or sampled.runs not in LEAST:
        return
    for place, least in ((sampled.place, LEAST[sampled.runs]), (sampled.outer, LEAST["python"])):
        if place is not None:
            found[place].shares[rank] += share
            found[place].weights[rank] += share / least


def _own_share(its: RankPaceSeen, place: CodePlace) -> float:
    of_rank = (one for report in its.reports for one in report.samples)
    return sum(one.number for one in of_rank if place in (one.place, one.outer)) / its.num_samples
