"""Common activities of all ranks as causes: loading data, saving, printing, compiling, waiting for files. Pure.

Where one rank alone does it, the others wait for that rank: see stragglers.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from jupyter_dist.parts.slow.agent.asking.reports import Sampled
from jupyter_dist.parts.slow.agent.observed import LEAST_SAMPLES_OF_LOOK, RUN, Observed, RankPaceSeen
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet
from jupyter_dist.protocol.wire.places import name_of_file
from jupyter_dist.transport.rows import CodePlace

from .causes import HINTS, Cause, at_place, in_sentence, percent, seconds_in_words
from .stragglers import find_straggler

if TYPE_CHECKING:
    from jupyter_dist.parts.slow import models

LEAST_BLOCKED = 0.3
NUM_COMPILES = 6  # in the time that is judged: the first compilation of a model is several
LEAST_OF_NOW = 0.7  # of a share must be seen in the newest look
LEAST_OF_ALL = 0.6  # of the ranks must be found doing it, or at a line if it is not known who waits for whom
_MAY_END = frozenset({"input", "workers", "print"})  # which must be found in the newest look, too


class Habit(NamedTuple):
    """What ranks are found doing, from which part of the time on it is a cause, and in which words."""

    kind: models.SlowKind
    activities: tuple[str, ...]
    least: float
    message: Callable[[str, str], str]  # with the share and the place
    witness: Callable[[str], str]  # with the share
    hint: str
    # Of ranks for which the others wait, with their names; without it, all ranks must be found doing it.
    of_late: Callable[[str, str, str], str] | None = None
    on_path: bool = False  # whether it counts where it is on the critical path, by turns
    completed: Callable[[Observed, Cause], Cause | None] | None = None  # with what else is known


def find_habit(seen: Observed, habit: Habit) -> Cause | None:
    """Return the cause if ranks are found doing it for a large part of the time."""
    of_all = _share_of_all(seen, *habit.activities)
    of_path = seen.path.share(*habit.activities) if habit.on_path or habit.of_late else 0.0
    share = max(of_all, of_path)
    if share < habit.least:
        return None
    if of_all < habit.least and habit.of_late is not None:
        return _of_late_ranks(seen, habit, of_path, habit.of_late)
    place, its = _one(seen, *habit.activities).main_place(*habit.activities), percent(share)
    message, evidence = habit.message(its, at_place(place)), [habit.witness(its)]
    cause = Cause(habit.kind, RankSet(seen.ranks), share, message, evidence, habit.hint, place)
    return cause if habit.completed is None else habit.completed(seen, cause)


def _of_late_ranks(seen: Observed, habit: Habit, share: float, told: Callable[[str, str, str], str]) -> Cause | None:
    ranks = RankSet(rank for rank, sampled in seen.path.samples if sampled.activity in habit.activities)
    if len(ranks) < len(seen.ranks) and find_straggler(seen) is not None:
        return None
    place, its = seen.path.main_place(*habit.activities), percent(share)
    witness = say("The rank that the others wait for next is found there in %1 of the samples.", its)
    message = told(in_sentence(ranks, len(seen.ranks)), its, at_place(place))
    return Cause(habit.kind, ranks, share, message, [witness], habit.hint, place)


def _with_input(seen: Observed, cause: Cause) -> Cause:
    """Add whether workers are started again and again, and the line of a dataset that loads in the rank itself."""
    rank = _one(seen, "input", "workers")
    if seen.median(lambda rank: rank.share("workers")) > cause.share / 2:
        place, told = rank.main_place("workers"), say("Most of that time it starts worker processes.")
        hint = say("Keep the workers from one epoch to the next: DataLoader(..., persistent_workers=True).")
    elif (inner := rank.inner_of("input")) is not None:
        place, told = rank.main_place("input"), say("It loads in the rank itself, at %1.", inner)
        hint = say("Load in other processes: DataLoader(..., num_workers=4), or make loading cheaper.")
    else:
        return cause
    message = INPUT.message(percent(cause.share), at_place(place))
    return replace(cause, message=message, evidence=[*cause.evidence, told], advice=hint, place=place)


def _with_compilations(seen: Observed, cause: Cause) -> Cause | None:
    number = seen.median(lambda rank: sum(report.num_compiles for report in rank.reports))
    if number < NUM_COMPILES:
        return None
    return replace(
        cause,
        evidence=[
            say(
                "Compilations were found %1 times in the last seconds, with other code between them.",
                format(number, ".0f"),
            )
        ],
    )


def _found_there(share: str) -> str:
    return say("They are found there in %1 of the samples of their stacks.", share)


INPUT = Habit(
    "input",
    ("input", "workers"),
    0.3,
    lambda share, at: say("Input: %1 of the time ranks wait for the next batch%2.", share, at),
    lambda share: say("The ranks are found in the DataLoader in %1 of the samples of their stacks.", share),
    say("Use more workers (num_workers), a larger prefetch_factor, or make loading cheaper."),
    on_path=True,
    completed=_with_input,
)
HABITS = (
    INPUT,
    Habit(
        "saving",
        ("save",),
        0.12,
        lambda share, at: say("Saving takes %1 of the time%2.", share, at),
        _found_there,
        HINTS["save"],
        lambda who, share, at: say("Saving on %1, for which the others wait, takes %2 of the time%3.", who, share, at),
    ),
    Habit(
        "printing",
        ("print",),
        0.15,
        lambda share, at: say("Printing takes %1 of the time%2.", share, at),
        _found_there,
        HINTS["print"],
        lambda who, share, at: say(
            "Printing on %1, for which the others wait, takes %2 of the time%3.", who, share, at
        ),
    ),
    Habit(
        "objects",
        ("objects",),
        0.12,
        lambda share, at: say("Objects are pickled and unpickled for other ranks %1 of the time%2.", share, at),
        lambda share: say(
            "The ranks are found in torch's functions for it in %1 of the samples of their stacks.", share
        ),
        say("Send tensors instead of objects (all_gather), fewer objects, or send them seldom."),
        on_path=True,
    ),
    Habit(
        "compiling",
        ("compile",),
        0.15,
        lambda share, at: say("torch compiles again and again, %1 of the time%2.", share, at),
        _found_there,
        HINTS["compile"],
        completed=_with_compilations,
    ),
    Habit(
        "unused_parameters",
        ("unused",),
        0.1,
        lambda share, at: say(
            "DistributedDataParallel looks for unused parameters %1 of the time, after each forward pass%2.", share, at
        ),
        lambda share: say("It is found walking through the outputs of the model in %1 of the samples.", share),
        say(
            "Leave find_unused_parameters=True out if all parameters get gradients, or use "
            "static_graph=True; let forward() return tensors only."
        ),
    ),
)


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


# -- the line that takes the most of a step ----------------------------------------------------------

# Of a step. What a line calls in C itself may be the work that the loop is for; what torch does in Python is.
LEAST = {"python": 0.2, "c": 0.4}
LEAST_SCATTERED = 0.5  # that many lines of a function take together, of which none stands out
MANY_LINES = 8
NEARLY = 0.8
LIKE_OTHERS = 0.3  # of the most that a rank is found there
_DO_ELSEWHERE = say(
    "If the loop is not there for this: do it once before the loop, in a thread, or in other processes."
)
_FEWER_LINES = say("Fewer operations in Python, on more data each: on tensors, or compiled (torch.compile).")


class _Spent(NamedTuple):
    """What ranks spend at lines: by rank as parts of the time, and as multiples of the least to be named."""

    shares: defaultdict[int, float]
    weights: defaultdict[int, float]

    def add(self, rank: int, share: float, least: float) -> None:
        """Add a part of the time."""
        self.shares[rank] += share
        self.weights[rank] += share / least

    def share(self, seen: Observed) -> float:
        """Return the share of the path, or of the time of all ranks."""
        return sum(self.shares.values()) / (1 if seen.path.is_known else len(seen.ranks))

    def weight(self, seen: Observed) -> float:
        """Return how many times the least to be named they take, of the path or on most ranks."""
        if seen.path.is_known:
            return sum(self.weights.values())
        few = int((1 - LEAST_OF_ALL) * len(seen.ranks))  # ranks that may spend less there
        return sorted(self.weights[rank] for rank in seen.ranks)[few]


Spent = defaultdict[Any, _Spent]


def _spent() -> Spent:
    return defaultdict(lambda: _Spent(defaultdict(float), defaultdict(float)))


def _samples(seen: Observed) -> Iterator[tuple[int, Sampled, float]]:
    """Yield the samples of each rank in the user's code, with their share of the path, or of the time of their rank."""
    if seen.path.is_known:
        total = seen.path.samples.total()
        found = [(rank, sampled, number / total) for (rank, sampled), number in seen.path.samples.items()]
    else:
        reports = [(rank, its, report) for rank, its in seen.ranks.items() for report in its.reports]
        found = [(rank, one, one.number / its.num_samples) for rank, its, report in reports for one in report.samples]
    return (one for one in found if one[1].activity == RUN and one[1].runs in LEAST)


def find_line(seen: Observed) -> Cause | None:
    """Return the line of Python, or of a function in C, that takes the most of a step; else lines that do together."""
    if not seen.has_steps or not seen.is_sampled:
        return None
    lines, functions, calls = _spent(), _spent(), set[tuple[CodePlace | None, CodePlace | None]]()
    for rank, sampled, share in _samples(seen):
        # And of the line of its caller: several lines of a function may take the time.
        for place, least in ((sampled.place, LEAST[sampled.runs]), (sampled.outer, LEAST["python"])):
            if place is not None:
                lines[place].add(rank, share, least)
        calls.add((sampled.place, sampled.outer))
        if sampled.place is not None:
            functions[sampled.place.file, sampled.place.function].add(rank, share, LEAST_SCATTERED)
    place = max(lines, key=lambda place: lines[place].weight(seen), default=None)
    if place is None or lines[place].weight(seen) < 1:
        return _scattered(seen, functions, lines)
    least = NEARLY * lines[place].share(seen)
    called = [inner for inner in lines if (inner, place) in calls and lines[inner].share(seen) >= least]
    place = called[0] if called else place  # it takes nearly as much as its caller
    own = {rank: _own_share(its, place) for rank, its in seen.ranks.items()}
    ranks = RankSet(rank for rank in own if own[rank] >= LIKE_OTHERS * max(own.values()))
    return replace(_fact(seen, lines[place].share(seen), place, _DO_ELSEWHERE), ranks=ranks, place=place)


def _scattered(seen: Observed, functions: Spent, lines: Iterable[CodePlace]) -> Cause | None:
    """Return the lines of a function that take most of a step together."""
    function = max(functions, key=lambda function: functions[function].weight(seen), default=None)
    numbers = sorted({place.line for place in lines if (place.file, place.function) == function})
    if function is None or functions[function].weight(seen) < 1 or len(numbers) < MANY_LINES:
        return None
    where = say("lines %1 to %2 of %3, none of which stands out", numbers[0], numbers[-1], name_of_file(function[0]))
    return _fact(seen, functions[function].share(seen), where, _FEWER_LINES)


def _fact(seen: Observed, share: float, where: object, hint: str) -> Cause:
    message = say("%1 of the time is spent at %2.", percent(share), where)
    if (step := seen.step_seconds) is not None:
        message = say("%1 of %2 a step are spent at %3.", *map(seconds_in_words, (share * step, step)), where)
    witness = (
        say("The rank that the others wait for next is found there in %1 of the samples.", percent(share))
        if seen.path.is_known
        else say("The ranks are found there in %1 of the samples of their stacks.", percent(share))
    )
    return Cause("line", RankSet(seen.ranks), share, message, [witness], hint)


def _own_share(its: RankPaceSeen, place: CodePlace) -> float:
    of_rank = (one for report in its.reports for one in report.samples)
    return sum(one.number for one in of_rank if place in (one.place, one.outer)) / its.num_samples
