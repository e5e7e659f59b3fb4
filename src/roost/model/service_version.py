"""The version that processes tell of themselves, for operators who exchange them one by one.

It is raised by each change of what a process understands of the others: messages, leases, what is in rows. A
feature that all processes must know is turned on by comparing it with the least version that is there.

    1   the first one; processes of before tell 0
"""

from typing import Final

SERVICE_VERSION: Final = 1
