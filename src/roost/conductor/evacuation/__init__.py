"""Evacuation by itself: hosts that are silent, and proved to be dead, are evacuated without an operator.

silence          how long each host of a cell was silent, as one conductor has observed it
judgement        what is to be done about a silent host: the proof that it is dead, or why there is none
dead_hosts       the coroutine of every super conductor that looks, proves and asks for the evacuations
fence_command    the command of the operators that powers a machine off
options          the options
"""
