"""`python -m indel`: the command, where its script is not on the path."""

from indel.cli import main

main()
