"""What people type. One file per command, loaded when it is used, so that `scrubjay --help` stays instant.

main.py       the program: its commands, global options, exit codes
command.py    what all commands share: examples in the help, global options after the command too
session.py    the global options of one call, and the engine they open
output.py     results for people and for programs; stored text never reaches a terminal raw
failures.py   errors as one line and an exit code
"""
