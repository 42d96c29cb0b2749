"""The program `ambar`, also as ``python -m ambar``."""

import sys

_REFUSED = 4
"""`ambar.cli.common.Exit.REFUSED`, which cannot be imported without the extra."""


def main() -> None:
    """Run the command line and exit; without the extra `cli`, print how to install it."""
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
