"""Where the program `glassloop` begins: the version at once, all else through the commands, and never a traceback."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        sys.exit(_print_version() if sys.argv[1:] in (["--version"], ["-V"]) else run(sys.argv[1:]))
    except KeyboardInterrupt:  # before `run` could take care of it
        sys.exit(130)


def _print_version() -> int:
    from glassloop import __version__

    try:
        print(f"glassloop {__version__}", flush=True)
    except OSError as error:
        _let_go_of_stdout()
        if not isinstance(error, BrokenPipeError):
            print(f"error: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; what goes wrong is said on stderr."""
    from glassloop.cli.failures import exit_code_of, report

    _open_what_is_closed()
    _speak_unicode()
    try:
        from glassloop.cli.app import app

        outcome = app.main(arguments or ["--help"], prog_name="glassloop", standalone_mode=False)
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except BaseException as error:
        report(error)
        return exit_code_of(error)
    finally:
        _let_go_of_stdout()


def _open_what_is_closed() -> None:
    """Started with a standard stream closed (`2>&-`), Python has None there; what is written then goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _speak_unicode() -> None:
    """Characters that this terminal's encoding lacks are shown as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _let_go_of_stdout() -> None:
    """If the reader has gone (`| head -1`), what is still buffered must not raise while Python exits."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    main()
