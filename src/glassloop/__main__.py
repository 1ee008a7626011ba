"""`python -m glassloop` is the terminal program."""

from glassloop.cli.main import main

if __name__ == "__main__":
    main()
