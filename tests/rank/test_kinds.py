"""What stands for something that all ranks use together is found by its type, and nothing of the user's runs."""

from torch.nn.parallel import DistributedDataParallel

from jupyter_dist.rank.cells.looks.kinds import kinds_of


class Forbidden(BaseException):
    pass


class Meta(type):
    def __getattribute__(cls, name):
        raise Forbidden(name)

    def __hash__(cls):
        raise Forbidden("hash")

    def __eq__(cls, other):
        raise Forbidden("eq")


def hostile():
    """Not at the level of the module, where pytest looks at it."""

    class Hostile(metaclass=Meta):
        def __getattribute__(self, name):
            raise Forbidden(name)

    return Hostile()


class Odd:
    __module__ = 5


class Derived(DistributedDataParallel):
    pass


def test_kinds_are_found_by_type_alone():
    names = {"model": DistributedDataParallel.__new__(DistributedDataParallel), "derived": Derived.__new__(Derived)}
    others = {"hostile": hostile(), "odd": Odd(), "number": 3, 7: "no name", "_hidden": names["model"]}
    long = {"m" * 1_000_000: names["model"]}  # a reply has the names in its header, whose size is limited
    assert kinds_of({**names, **others, **long}) == {"model": "ddp", "derived": "ddp"}


def test_what_a_dictionary_or_an_object_of_the_cells_holds_has_a_kind_too():
    model, own = Derived.__new__(Derived), type("Own", (), {"__module__": "__main__"})()
    with_buffers = Derived.__new__(Derived)
    with_buffers.__dict__["modules_buffers"] = [1]
    own.model = model
    names = {"models": {"a": model}, "trainer": own, "other": {"a": 1}, "m": with_buffers}
    assert kinds_of(names) == {"models[]": "ddp", "trainer.model": "ddp", "m": "model"}


def test_no_property_or_comparison_of_the_cells_own_classes_runs():
    def forbidden(*_):
        raise Forbidden

    own = type("Own", (), {"__module__": "__main__", "__dict__": property(forbidden)})()
    odd = type("Odd", (), {"__module__": type("Module", (), {"__eq__": forbidden, "__hash__": None})()})()
    assert kinds_of({"own": own, "odd": odd}) == {}


def test_a_type_that_has_the_id_of_one_that_is_gone_is_looked_at_again():
    for _ in range(200):  # ids are used again at once
        passing = type("Passing", (DistributedDataParallel,), {})
        assert kinds_of({"one": passing.__new__(passing)}) == {"one": "ddp"}
        del passing
        passing = type("Passing", (), {})
        assert kinds_of({"one": passing()}) == {}
        del passing
