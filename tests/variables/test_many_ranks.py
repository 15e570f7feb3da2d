"""What the server does for groups of thousands of ranks grows with the ranks, not with their square."""

from jupyter_dist.parts.variables.server import fold_variables

NUM_RANKS = 64


class CountedVariable(dict):
    """A variable on one rank; counts comparisons."""

    num_compared = 0
    __hash__ = None

    def __eq__(self, other):
        CountedVariable.num_compared += 1
        return super().__eq__(other)


def test_values_that_differ_on_all_ranks_are_not_compared_with_each_other():
    listed = {rank: {"x": CountedVariable(type="int", text=str(rank // 2))} for rank in range(NUM_RANKS)}
    listed[NUM_RANKS] = {}
    (found,) = fold_variables(listed)
    assert (found["name"], found["missing"]) == ("x", str(NUM_RANKS))
    assert found["rows"][:2] == [
        {"type": "int", "text": "0", "ranks": "0-1"},
        {"type": "int", "text": "1", "ranks": "2-3"},
    ]
    assert len(found["rows"]) == NUM_RANKS // 2
    assert CountedVariable.num_compared <= NUM_RANKS
