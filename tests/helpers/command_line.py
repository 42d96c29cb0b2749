"""Runs the command line in the process of the test."""

from __future__ import annotations

import pytest

from ambar.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command line in this process; return exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return int(done.value.code or 0), printed.out, printed.err
