"""The list of commands, and the commands that are made of the table of operations."""

import pytest

from jupyter_dist.cli.command import Command
from jupyter_dist.cli.commands.operation import OperationCommand
from jupyter_dist.cli.listing import COMMANDS
from jupyter_dist.client.answers.texts import fields_text
from jupyter_dist.protocol.operations import OPERATIONS
from jupyter_dist.protocol.schemas import fields_of


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_class_that_knows_its_name(name):
    command = COMMANDS[name].load()
    assert issubclass(command, Command)
    assert command().parser().prog == f"jupyter dist {name}"
    assert command.__doc__


def test_an_operation_with_a_command_has_one_with_its_arguments():
    named = [operation for operation in OPERATIONS if operation.command]
    assert {"stacks", "verdicts"} <= {operation.command for operation in named}
    for operation in named:
        command = COMMANDS[operation.command].load()
        assert issubclass(command, OperationCommand)
        assert command.operation is operation
        options = {action.dest for action in command().parser()._actions}
        given = {name for model in (operation.body, operation.query) if model for name in fields_of(model)}
        assert given | ({"group"} if operation.is_of_group else set()) <= options, operation.command


@pytest.mark.parametrize("name", ["status", "stacks", "logs", "attach"])
def test_the_group_is_the_first_argument_or_an_option(name):
    parser = COMMANDS[name].load()().parser()
    assert [parser.parse_args(words).group for words in ([], ["t"], ["-g", "t"], ["--group", "t"])] == [None] + [
        "t"
    ] * 3


def test_an_answer_without_a_text_of_its_own_is_printed_by_its_fields():
    assert fields_text({"seconds_up": 3, "name": "t", "ranks": [1]}) == "seconds up: 3\nname: t\nranks: [1]"
