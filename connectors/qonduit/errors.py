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


class AccessError(DeviceError):
    """A vendor does not accept the token, or the token does not allow this."""

    exit_code = 77


class AwayError(DeviceError):
    """A device did not answer, or asked to come back later: a read may be tried again.

    `maybe_accepted` is False only where it is certain that the device did not take what was sent (the connection was
    refused, or it said so); only then may a submission be tried again.
    """

    def __init__(self, sentence: str, *, maybe_accepted: bool = True, retry_after_s: float | None = None) -> None:
        super().__init__(sentence)
        self.maybe_accepted = maybe_accepted
        self.retry_after_s = retry_after_s


class UnsettledError(DeviceError):
    """Nobody can tell whether a submission was accepted: a person has to decide, and nothing is sent again."""

    exit_code = 74


class StoppedError(QonduitError):
    """Interrupted by the user while a device was at work."""

    exit_code = 130


class StaleError(DeviceError):
    """A device refused a request because its calibration has changed since; prepared again it may be sent."""
