"""The command line: `main` finds a command, one file for each command.

Exit status: 0 done, 1 found something wrong, 2 could not run.
"""
