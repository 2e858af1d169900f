"""What every vendor's calls have in common: a token that can be sent, and answers that may not be as promised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from qonduit.devices.settings import Settings
from qonduit.errors import AccessError, AwayError


def is_token(text: str) -> bool:
    """Whether a header can carry it: the error of an HTTP library would show one that it cannot send."""
    return text.isascii() and text.isprintable() and " " not in text


def token_of(settings: Settings, vendor: str) -> str:
    token = settings.secret()
    if not is_token(token):
        raise AccessError(f"what is in {settings.token_file} cannot be a token; put {vendor}'s token into it")
    return token


@contextmanager
def understood(vendor: str) -> Iterator[None]:
    """Around what reads an answer: valid JSON of another shape than the API promises is as good as no answer."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        said = " ".join(repr(error).split())[:100]
        raise AwayError(f"{vendor}'s answer is not as its API promises ({said}); try again later") from None
