"""`logs`: the output of a rank, past and live."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator

from jupyter_dist.cli.command import Command, add_group_argument
from jupyter_dist.client.answers.infos import LogRecordInfo
from jupyter_dist.client.bundles.bundle import output_text
from jupyter_dist.protocol.models.models import LogRecord


class LogsCommand(Command):
    """Show the output of a rank; with --json one record of docs/api.md (LogRecord) per line."""

    needs_groups = True

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the rank and the length of the log."""
        add_group_argument(parser)
        parser.add_argument("-r", "--rank", type=int, default=0)
        parser.add_argument("-f", "--follow", action="store_true", help="follow until Ctrl-C")
        parser.add_argument("--tail-bytes", type=int, default=1 << 18, help="how much past output")

    def act(self) -> int:
        """Print the records page by page."""
        for records in self._pages():
            for record in records:
                sys.stdout.write(json.dumps(record.model) + "\n" if self.options.json else record_text(record.model))
            sys.stdout.flush()
        return 0

    def _pages(self) -> Iterator[Iterable[LogRecordInfo]]:
        group = self.client.attach(self.options.group)
        if self.options.follow:
            yield from group.follow_logs(self.options.rank, self.options.tail_bytes)
        else:
            yield group.logs(self.options.rank, self.options.tail_bytes)


def record_text(record: LogRecord) -> str:
    """Return a record as text."""
    kind = record["kind"]
    if kind == "stream":
        return str(record["text"])
    if kind == "output":
        text = output_text(record["output"])
        return text if text.endswith("\n") else text + "\n"
    if kind == "begin":
        lines = (record.get("code") or "").strip().splitlines()
        return f"--- [{record['execution_count']}] {lines[0] if lines else ''}\n"
    if kind == "end":
        return f"--- {record['status']}, {record['seconds'] or 0:.2f} s\n"
    return f"--- {record.get('text', '')}\n"
