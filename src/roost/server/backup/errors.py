"""Errors of backups and restores.

BackupError
├── ToolMissing        a program of the database's client package is not installed
├── ToolFailed         such a program ended with an error
├── BackupUnreadable   a folder is not a backup, or its files have changed
├── BackupTooOld       the backup was made by a Roost from which this one cannot upgrade
├── BackupTooNew       the backup was made by a newer Roost
└── TargetNotEmpty     the database or folder to restore into is not empty
"""

from roost.model.errors import OperatorError


class BackupError(OperatorError):
    """A backup or a restore failed."""


class ToolMissing(BackupError):
    """A program is not installed."""


class ToolFailed(BackupError):
    """A program ended with an error."""


class BackupUnreadable(BackupError):
    """A folder is not a backup, or its files are not as they were written."""


class BackupTooOld(BackupError):
    """The tables of a backup are older than those that this program upgrades."""


class BackupTooNew(BackupError):
    """The tables of a backup, or its format, are newer than this program."""


class TargetNotEmpty(BackupError):
    """The database or the folder to restore into is not empty."""
