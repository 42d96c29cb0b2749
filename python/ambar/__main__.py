"""The program `ambar`, also as ``python -m ambar``."""

import signal
import sys
import threading

_REFUSED, _INTERRUPTED = 4, 130
"""Codes of `ambar.cli.options.Exit`, which cannot be imported without the extra."""


def main() -> None:
    """Run the command line and exit; without the extra `cli`, print how to install it."""
    # Batch systems end jobs by SIGTERM. As after Ctrl-C, temporary files are removed.
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run()
    except KeyboardInterrupt:  # before the commands handle it: the imports take half a second
        sys.stderr.write("interrupted\n")
        sys.exit(_INTERRUPTED)


def _run() -> None:
    try:
        from ambar.cli import main as run
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("rich", "typer"):
            raise
        sys.stderr.write(f"error: the command line needs {missing}: pip install 'ambar[cli]'\n")
        sys.exit(_REFUSED)
    run()


if __name__ == "__main__":
    main()
