"""What ranks report of their steps. Rows, as lists in JSON: the agent reads them by `transport/rows.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

from jupyter_dist.transport.rows import CodePlace

NO_RATE = 1e-10  # a learning rate that changes nothing
Settings = tuple[dict[str, Any], ...]  # of each group of an optimizer's parameters


class Value(NamedTuple):
    """A tensor on one rank."""

    digest: str
    first: float | None  # None: it is not finite
    varies: bool = True  # the elements that were read differ
    is_rich: bool = False  # many numbers without an order, as random ones are
    shape: tuple[int, ...] = ()  # of a tensor of a batch


class Batch(NamedTuple):
    """What a model was called with."""

    digest: str
    first: float | None
    varies: bool
    shape: tuple[int, ...]
    place: CodePlace | None
    parts: tuple[Value, ...] = ()


class ModelCalls(NamedTuple):
    """The calls of a model before a step."""

    is_watched: bool
    outer: int
    batches: int  # calls with other data than the call before
    num_synced: int
    is_synced: bool
    is_training: bool | None
    num_layers: int
    num_active: int
    kind: str  # of the model
    batch: Batch | None


class Stale(NamedTuple):
    """What backward passes before a step found in a gradient."""

    passes: int
    stale: int
    lost: int  # passes after the first that found no gradient
    name: str
    value: float


class Left(NamedTuple):
    """The parameters without a gradient, and parameters that no optimizer holds."""

    held: int = 0
    idle: int = 0
    idle_names: tuple[str, ...] = ()
    gone: int = 0
    frozen: int = 0
    unheld: tuple[str, ...] = ()
    forgotten: int = 0  # parameters after held ones, and fewer


class Strangers(NamedTuple):
    """A module with gradients that no optimizer holds."""

    module: str
    number: int
    names: tuple[str, ...]


class Wrong(NamedTuple):
    """Tensors with numbers that are not finite."""

    names: tuple[str, ...]
    number: int
    of: int
    value: str


class CallFact(NamedTuple):
    """What calls of a library have shown on a rank: numbers and texts as observing/calls sends them."""

    kind: str
    key: str
    numbers: tuple[float, ...]
    texts: tuple[str, ...]
    place: CodePlace | None


class Model(NamedTuple):
    """A model whose parameters an optimizer holds."""

    kind: str  # ddp, fsdp, tensor, plain
    averaging: tuple[int, ...]  # whose gradients are averaged, so that their data should differ
    replicas: tuple[int, ...]  # whose parameters are alike, bit by bit
    has_comm_hook: bool  # gradients may be averaged by another rule


class About(NamedTuple):
    """An optimizer: the names of its compared parameters, and its models."""

    names: tuple[str, ...]  # of weights: its parameters, and the buffers of DDP models
    models: tuple[Model, ...]


class Distributed(NamedTuple):
    """The settings of a DistributedSampler."""

    num_replicas: int
    rank: int
    epoch: int
    seed: int
    shuffle: bool
    drop_last: bool
    total_size: int


class Pass(NamedTuple):
    """A pass over a loader."""

    loader: int
    number: int
    before: int  # steps in the pass before
    trains: bool
    sampler: str
    length: int | None
    order: str | None  # of its data, as far as that has names or numbers; of a Subset it begins with +
    distributed: Distributed | None
    place: CodePlace | None


class EndedSteps(NamedTuple):
    """The steps of an optimizer in a cell that has ended."""

    optimizer: int
    steps: int
    num_synced: int
    is_written: bool
    settings: Settings = ()  # in the end
    is_alone: bool = False  # the cell has communicated with no rank


class StepLook(NamedTuple):
    """A step of an optimizer on one rank."""

    optimizer: int
    step: int
    signature: str
    place: CodePlace | None
    gradients: tuple[Value | None, ...] = ()
    weights: tuple[Value | None, ...] = ()
    settings: Settings = ()
    is_written: bool = False  # the parameters were changed by something else than the optimizer
    calls: tuple[ModelCalls, ...] = ()
    stale: Stale | None = None
    left: Left = Left()
    strangers: Strangers | None = None
    gradient_wrong: Wrong | None = None
    weight_wrong: Wrong | None = None
    wrong_call: str | None = None
    about: About | None = None
    passes: tuple[Pass, ...] = ()
    idle_layers: tuple[str, ...] = ()  # called, though no gradient came back
    reduced: int = 0  # sums of single numbers before the backward pass, and no other communication
