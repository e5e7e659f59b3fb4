"""Evacuation by itself: hosts that are silent, and proved to be dead, are evacuated without an operator.

silence          the silence of each host of a cell, as one conductor observes it
judgement        the judgement of a silent host: the proof that it is dead, or why there is none
dead_hosts       the coroutine of every super conductor that looks, proves and asks for the evacuations
fence_command    the command of the operators that powers a machine off
options          the options
"""
