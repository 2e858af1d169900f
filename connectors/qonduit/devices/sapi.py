"""Calls to D-Wave's Solver API, one attempt each, and what their failures mean in this package's errors.

The session is that of the vendor's client: it knows the versions of the answers and the shape of the errors.
"""

from __future__ import annotations

import json
import logging
from typing import Any

from qonduit.devices.settings import Settings
from qonduit.devices.vendor import token_of
from qonduit.errors import AccessError, AwayError, DataError, DeviceError, QonduitError

LONGEST_QUOTE = 300


class RefusedError(DataError):
    """The vendor has read a request and refuses it."""


class MissingError(RefusedError):
    """The vendor knows nothing of this name."""


class Sapi:
    def __init__(self, settings: Settings, region: str, timeout_s: float) -> None:
        self._settings = settings
        self._url = settings.url or f"https://{region}.cloud.dwavesys.com/sapi/v2"
        self._timeout_s = timeout_s

    def call(self, method: str, path: str, media: str | None = None, **content: Any) -> Any:
        """The answer's JSON; `media` is the kind of answer that the API promises here."""
        import requests

        token = token_of(self._settings, "D-Wave")
        with self._client() as client:
            # Not through the client's configuration, which it writes to its log.
            client.session.headers["X-Auth-Token"] = token
            if media is not None:
                kind = f"application/vnd.dwave.sapi.{media}+json"
                client.session.set_accept(media_type=kind, accept_version="~=3.0", ask_version="3.0.0")
            try:
                # A redirected submission would be a second one.
                response = client.session.request(method, path, allow_redirects=False, **content)
                if 300 <= response.status_code < 400:
                    raise DeviceError(f"D-Wave at {self._url} sends to another address; check 'url'")
                return json.loads(response.content)
            except requests.RequestException as error:
                raise _translated(error, self._url, token) from None
            except (ValueError, TypeError):
                raise AwayError(f"the answer of D-Wave at {self._url} is not the JSON it promises") from None

    def _client(self) -> Any:
        from dwave.cloud.api.client import SolverAPIClient

        # Below DEBUG the client logs the headers of its calls, and a token is one of them.
        vendor_log = logging.getLogger("dwave.cloud")
        if vendor_log.getEffectiveLevel() < logging.DEBUG:
            vendor_log.setLevel(logging.DEBUG)
        return SolverAPIClient(  # type: ignore[no-untyped-call]
            endpoint=self._url,
            timeout=(self._timeout_s, self._timeout_s),
            retry={"total": 0},
            on_deprecation={"log": True, "warn": False, "store": False},
        )


def _translated(error: Exception, url: str, token: str) -> QonduitError:
    import requests
    from dwave.cloud.api.exceptions import RequestTimeout, ResourceBadResponseError

    response = getattr(error, "response", None)
    if response is not None and not response.ok:
        said = str(getattr(error, "error_msg", None) or response.reason or "").replace(token, "[token]")
        return refusal(response.status_code, said, _retry_after_s(response.headers.get("Retry-After")))
    if _never_sent(error):
        return AwayError(f"D-Wave at {url} cannot be reached; check the network and 'url'", maybe_accepted=False)
    if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema):
        return DeviceError(f"{url} is no address of D-Wave; correct 'url'")
    if isinstance(error, RequestTimeout):
        return AwayError(f"D-Wave at {url} did not answer in time; raise 'timeout_s' or try again")
    if isinstance(error, ResourceBadResponseError):
        return AwayError(f"the answer of D-Wave at {url} is not of the kind it promises")
    return AwayError(f"the connection to D-Wave at {url} broke ({type(error).__name__})")


def _never_sent(error: Exception) -> bool:
    """Whether no connection came about: the name was not found, nobody listened, or nobody answered the knock.

    Only what the error itself carries counts. Its context may hold the failure of an earlier call, and to take that
    for this one's would be to send a submission twice.
    """
    import requests
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    cause = error.__cause__ or error
    reason = getattr(cause.args[0], "reason", None) if cause.args else None
    return isinstance(cause, requests.ConnectTimeout) or isinstance(reason, NewConnectionError | ConnectTimeoutError)


def refusal(status: int, said: str, retry_after_s: float | None = None) -> QonduitError:
    """What a status code of the vendor's means, of a whole call or of one problem in it."""
    said = f"{status}: {' '.join(said.split())[:LONGEST_QUOTE]}"
    if status in (401, 403):
        return AccessError(f"D-Wave does not accept the token or does not allow this ({said}); check the token file")
    if status in (423, 429):
        again = f"D-Wave asks to come back later ({said})"
        return AwayError(again, maybe_accepted=False, retry_after_s=retry_after_s)
    if status == 404:
        return MissingError(f"D-Wave does not know what was asked for ({said})")
    if 400 <= status < 500 and status not in (408, 425):
        return RefusedError(f"D-Wave refuses the request ({said}); change the problem or the device's options")
    return AwayError(f"D-Wave has a problem of its own ({said}); try again later", retry_after_s=retry_after_s)


def _retry_after_s(header: str | None) -> float | None:
    """Seconds, from a number or a date."""
    if not header:
        return None
    from urllib3.exceptions import InvalidHeader
    from urllib3.util import Retry

    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = Retry().parse_retry_after(header)
        except InvalidHeader:
            return None
    return seconds if 0 <= seconds < float("inf") else None
