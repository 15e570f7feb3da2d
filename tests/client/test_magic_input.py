"""Errors are one sentence that names the problem and a hint; the kernel stays usable."""

import pytest


@pytest.mark.part("ddip")
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("%dist_init --accelerator cuda", "Group 'lesson' is already running on CPU."),
        ("%dist_init --backend nccl", "Group 'lesson' is already running with backend gloo."),
        ("%dist_init -g a,b", "'a,b' is not a list of devices. Write 0,1,3 or all."),
        ("%dist_init -n 0 --name new", "-n is 0. CPU ranks, 1 to 64"),
        ("%dist_init -n 3", "Group 'lesson' is already running with 2 ranks. Omit -n to attach to it"),
        ('%dist_init -n "2', "'-n \"2': no closing quotation. usage: %dist_init"),
        ("%dist_init 3", "Group 'lesson' is already running with 2 ranks. Omit -n to attach to it"),
        ("%dist_init 2 2", "Unrecognized arguments: 2. usage: %dist_init"),
        ("%dist_init -a gpu17", "Ranks meet on the server's machine or on node 0, not on 'gpu17'. Omit -a."),
        ("%dist_init --name 'a b'", "'name' cannot be 'a b'."),
        ("%sync now", "Unrecognized arguments: now. usage: %sync"),
        ("%dist_mode -x", "Unrecognized arguments: -x. usage: %dist_mode [-h] [-e | -d]"),
        ("%%rank\n1", "Which ranks? %%rank [0,2]"),
        ("%%rank[\n1", "'[' in '[' is not a rank expression. This group has ranks 0 to 1."),
        ("%%rank [0-]\n1", "'0-' in '[0-]' is not a rank expression."),
        ("%%rank [6,7]\n1", "There is no rank 6 ('6'). This group has ranks 0 to 1."),
        ("%dist_reset -d", "Unrecognized arguments: -d. usage: %dist_reset [-h] [-n]"),
        ("%%distributed 0\n1", "%%distributed takes no arguments; to choose ranks: %%rank 0"),
        ("%%dip nowhere\n1", "Argument where: invalid choice: 'nowhere'"),
        ("%%dip --see -5\n1", "There is no rank -5 ('-5')."),
        ("%%dip local\n1 / 0", "The cell failed in the kernel (ZeroDivisionError)."),
        ("%autodip maybe", "Argument switch: invalid choice: 'maybe'"),
        ("%dipush", "Which variables? %dipush v1 v2."),
        ("%dipush get_ipython", "'get_ipython' (method) cannot be sent"),
        ("%dipull", "The following arguments are required: names."),
        ("%dipull -r 9 x", "There is no rank 9 ('9')."),
        ("%dipull class", "'class' is not a variable."),
        ("%dipull rank+1", "'rank+1' is not a variable. For other values: %dipper group"),
        ("%dipper 3x", "Under which name? %dipper group."),
    ],
)
def test_a_sentence(notebook, cell, sentence):
    ran = notebook.run(cell)
    assert ran.status == "error"
    assert ran.error.startswith(f"DistError: {sentence}")
    assert "\n" not in ran.error


@pytest.mark.part("ddip")
@pytest.mark.parametrize("line", ["%dist_init --gpu-ids 3,4", "%makedip -g all", "%makedip -g 0 1"])
def test_devices_are_ignored_where_there_are_none(notebook, line):
    ran = notebook.run(line)
    notebook.run("%dist_mode -d")
    assert ran.status == "ok", ran.error
    assert "is ignored: this machine has no CUDA, ROCm or XPU device. The ranks run on CPU." in ran.text
    assert "Attached to group 'lesson'" in ran.text


@pytest.mark.part("ddip")
def test_output_of_a_rank_that_does_not_exist_is_not_waited_for(notebook):
    cell = notebook.run("%%dip --see 5\nprint(rank)")
    assert (cell.text, cell.said) == ("There is no rank 5: group 'lesson' has 2 ranks.\n", [])
    assert notebook.run("%%dip --see 1 5\nprint(rank)").said == [("1", "1\n")]


@pytest.mark.part("ddip")
@pytest.mark.parametrize(
    ("magic", "option"),
    [("%%dip", "--see"), ("%dist_init", "--gpu-ids"), ("%autodip", "--args"), ("%dipull", "--rank")],
)
def test_a_question_mark_shows_the_options(notebook, magic, option):
    assert option in notebook.run(f"{magic}?").pager


def test_help_is_no_error(notebook):
    ran = notebook.run("%dist_init --help")
    assert (ran.status, ran.error) == ("ok", None)
    assert "--gpu-ids" in ran.text


def test_the_kernel_is_as_usable_as_before(notebook):
    assert notebook.run("print(1 + 1)").text == "2\n"
    assert notebook.run("%%rank [0,1]\nrank").said == [("0", "0"), ("1", "1")]
