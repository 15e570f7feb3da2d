"""Its commands, as a shell runs them."""


def test_they_are_listed(dist):
    said = dist(status=2).stdout
    for word in ("variables", "memory", "compare"):
        assert f"  {word} " in said


def test_the_status_of_compare_is_one_of_three(dist, group):
    group.run("x, y, m = torch.ones(2), torch.ones(2) * rank, torch.empty(2, device='meta')").raise_for_error()
    assert "all equal" in dist("compare", "x").stdout
    assert "2 of 2 elements differ" in dist("compare", "y", status=1).stdout
    assert "not compared on ranks 0-1: it is on the meta device" in dist("compare", "m", status=3).stdout
