"""Finds memory that grows, pauses of the garbage collector, and processors that other programs use. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter

from jupyter_dist.parts.slow.agent.asking.reports import Grown
from jupyter_dist.parts.slow.agent.observed import Observed, RankPaceSeen
from jupyter_dist.protocol.models.sentences import say
from jupyter_dist.protocol.ranks import RankSet, name_ranks

from .causes import Cause, at_place, bytes_in_words, in_sentence, percent
from .stragglers import SMALL

LEAST_COLLECTING = 0.1
MAKES_OBJECTS = ("objects", "unused")  # activities that make the collector run: objects of messages, of DDP's outputs
MANY_OBJECTS = 0.08  # of the time of any rank
LEAST_REPORTS = 3  # in which memory grew, and a variable with it
MANY_REPORTS = 5  # without a variable: allocators take memory in steps at times
LEAST_GROWTH = 1 << 20  # bytes in each report
EVEN = 0.3  # the smallest growth of a report, of the mean: a cache grows fast, then slowly
LEAST_DELAY = 0.25
LEAST_DELAY_WAITED_FOR = 0.15  # if the others wait as long for these ranks


def find_collecting(seen: Observed) -> Cause | None:
    """Return the cause if Python's garbage collector pauses the ranks."""
    shares = {rank: seen_of.part(lambda report: report.collecting_seconds) for rank, seen_of in seen.ranks.items()}
    pausing = RankSet(rank for rank, share in shares.items() if share >= LEAST_COLLECTING)
    if not pausing or not seen.has_steps or not seen.is_sampled:  # what makes the objects is not known
        return None
    if max(sum(map(its.share, MAKES_OBJECTS)) for its in seen.ranks.values()) >= MANY_OBJECTS:
        return None
    share = statistics.median(shares[rank] for rank in pausing)
    number = max(sum(report.num_collections for report in seen.ranks[rank].reports) for rank in pausing)
    places = Counter(report.collecting_place for rank in pausing for report in seen.ranks[rank].reports)
    place = places.most_common(1)[0][0]
    its, who = percent(share), name_ranks(pausing)
    message = say("Python's garbage collector takes %1 of the time of %2%3.", its, who, at_place(place))
    evidence = [
        say("It has run %1 times in the last seconds, up to %2 of them.", number, format(max(shares.values()), ".0%"))
    ]
    advice = say(
        "Call gc.freeze() before the loop, or gc.disable() there and gc.collect() on all ranks at the same step."
    )
    return Cause("collector", pausing, share, message, evidence, advice, place)


def find_memory(seen: Observed) -> Cause | None:
    """Return the cause if the memory of ranks grows with each step, and the variable that holds it."""
    growths = {rank: growth for rank, its in seen.ranks.items() if (growth := _growth(its)) is not None}
    step = seen.step_seconds
    if not growths or step is None:
        return None
    ranks = RankSet(growths)
    by_step = statistics.median(growths.values()) * step
    grown = _most_grown(seen, ranks)
    holder = say(": %1 %2", grown.kind, grown.name) if grown is not None else ""
    place = grown.place if grown is not None else None
    size, where = bytes_in_words(by_step), in_sentence(ranks, len(seen.ranks))
    message = say("Memory grows by %1 a step on %2%3%4.", size, where, holder, at_place(place))
    looks = min(_num_looks(seen.ranks[rank]) for rank in ranks)
    evidence = [
        say("It grew in each of the last %1 looks, by %2 a second.", looks, bytes_in_words(max(growths.values())))
    ]
    if grown is not None:
        if grown.by:  # not of a sum
            evidence.append(say("%1 has %2 elements more than when the cell was first watched.", grown.name, grown.by))
        advice = say("Keep numbers in %1 and no tensors (loss.item(), tensor.detach().cpu()), or clear it.", grown.name)
    else:
        advice = say("Look at the list of what holds memory (Variables), and at tensors that keep their graph.")
    return Cause("memory", ranks, 0.0, message, evidence, advice, place, spans_looks=grown is not None)


def _num_looks(rank: RankPaceSeen) -> int:
    """Return in how many looks memory must have grown: more of them if no variable has grown with it."""
    return LEAST_REPORTS if rank.reports and rank.reports[-1].grown else MANY_REPORTS


def _growth(rank: RankPaceSeen) -> float | None:
    """Return the bytes a second by which the memory of a rank grows; None if it does not grow steadily."""
    looks = _num_looks(rank)
    reports = rank.looks[-looks - 1 :]
    if len(reports) < looks + 1:
        return None
    rates = []
    for before, after in itertools.pairwise(reports):
        added = after.memory_bytes - before.memory_bytes
        if added < LEAST_GROWTH or not after.seconds:
            return None
        rates.append(added / after.seconds)
    mean = statistics.fmean(rates)
    return mean if min(rates) >= EVEN * mean else None


def _most_grown(seen: Observed, ranks: RankSet) -> Grown | None:
    found: Counter[str] = Counter()
    by_name: dict[str, Grown] = {}
    for rank in ranks:
        for grown in seen.ranks[rank].reports[-1].grown[:1]:
            found[grown.name] += 1
            by_name[grown.name] = grown
    return by_name[found.most_common(1)[0][0]] if found else None


def find_contention(seen: Observed) -> Cause | None:
    """Return the cause if ranks wait for a core that other programs use."""
    delays = {rank: its.part(lambda report: report.kept_seconds) for rank, its in seen.ranks.items()}
    waiting = RankSet(
        rank
        for rank, delay in delays.items()
        if delay >= LEAST_DELAY or (delay >= LEAST_DELAY_WAITED_FOR and _is_waited_for(seen, rank))
    )
    rest = [delay for rank, delay in delays.items() if rank not in waiting]
    if not waiting or not rest or len(waiting) > len(delays) / 2:
        return None
    share = min(statistics.median(delays[rank] for rank in waiting), 1.0)
    others = [rank for rank in delays if rank not in waiting]
    if share < 3 * max(statistics.median(rest), 0.01) or not seen.lack_cores(waiting, others):
        return None
    stopped = seen.median(lambda rank: rank.part(lambda report: report.stopped_seconds), waiting)
    why = say("it is stopped or throttled") if stopped > share / 2 else say("other programs use it")
    its, usual = percent(share), percent(statistics.median(rest))
    message = say("%1 could run and got no processor %2 of the time: %3.", name_ranks(waiting, begins=True), its, why)
    evidence = [say("The main threads of the others waited %1 of the time for a core.", usual)]
    advice = say(
        "Look at the host's other processes (top), at pinned cores (taskset) and at the container's CPU limit."
    )
    return Cause("contention", waiting, share, message, evidence, advice)


def _is_waited_for(seen: Observed, rank: int) -> bool:
    """Whether the other ranks wait for a rank in collectives, and it does not wait for them."""
    waits = seen.waits
    others = [waits.share(other) for other in waits.stays if other != rank]
    if not seen.are_waits_known or rank not in waits.stays or not others:
        return False
    usual = statistics.median(others)
    return usual >= LEAST_DELAY_WAITED_FOR and waits.share(rank) < SMALL * usual
