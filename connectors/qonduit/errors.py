"""The errors that a user may meet: one sentence that says what is wrong and what to do, and an exit code.

Exit codes follow sysexits(3), so that a scheduler or a script can tell a typing mistake from bad data
and from a device that is away.
"""


class QonduitError(Exception):
    """Base of the family; anything else that escapes is a defect of ours and shows its traceback."""

    exit_code = 70


class UsageError(QonduitError):
    """An option, an environment variable or a path that was given is wrong."""

    exit_code = 2


class DataError(QonduitError):
    """An input file is readable but what it holds cannot be used."""

    exit_code = 65


class DeviceError(QonduitError):
    """A device refused, failed or is away."""

    exit_code = 69
