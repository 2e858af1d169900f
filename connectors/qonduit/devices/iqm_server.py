"""Calls to an IQM server through IQM's own client: one attempt each, every failure as one of our errors.

The client knows the address, the login and the shape of a submission. It repeats nothing by itself and is not asked
to wait for a job: that would be a call every second.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from qonduit.devices.settings import Settings
from qonduit.devices.vendor import token_of, understood
from qonduit.errors import AccessError, AwayError, DataError, DeviceError, QonduitError, UsageError

if TYPE_CHECKING:
    import requests
    from iqm.iqm_server_client.iqm_server_client import IQMServerClient
    from iqm.station_control.interface.models.circuit import PostJobsRequest

T = TypeVar("T")
Send = Callable[..., "requests.Response"]
ENDED_BEFORE = "illegal_job_status"
COMPUTER = "IQM_QUANTUM_COMPUTER"


class RefusedError(DataError):
    """The server understood a call and refuses it."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class IqmServer:
    def __init__(self, settings: Settings, quantum_computer: str | None, timeout_s: float) -> None:
        self._settings = settings
        self._name = quantum_computer
        self._timeout_s = timeout_s
        self._client: IQMServerClient | None = None

    def connect(self) -> IQMServerClient:
        """The client, which asks the server for its quantum computers when it is made."""
        if self._client is None:
            self._client = _translated(self._made)
        return self._client

    def architecture(self, calibration: str = "default") -> dict[str, Any]:
        """The qubits and gates of a calibration set (the dynamic quantum architecture)."""
        path = f"calibration-sets/{{computer}}/{quote(calibration, safe='')}/dynamic-quantum-architecture"
        return self._object(self._get(path))

    def metrics(self, calibration: str) -> dict[str, Any]:
        return self._object(self._get(f"calibration-sets/{{computer}}/{quote(calibration, safe='')}/metrics"))

    def health(self) -> dict[str, Any]:
        return self._object(self._get("quantum-computers/{computer}/health"))

    def queue(self) -> dict[str, Any]:
        return self._object(self._get("quantum-computers/{computer}/queue-availability"))

    def submit(self, circuit: Sequence[Mapping[str, Any]], calibration: str, shots: int, key: str) -> dict[str, Any]:
        """Sends one circuit, once; the key is the job's tag and in the circuit's name."""
        try:
            client = self.connect()
        except AwayError as error:
            # What failed is the call before the submission.
            raise AwayError(str(error), maybe_accepted=False, retry_after_s=error.retry_after_s) from None
        except (AccessError, DataError):
            raise
        except (UsageError, DeviceError) as error:
            # An address, a certificate or a client that has to be put right: it is certain that nothing was sent.
            raise DataError(str(error)) from None
        try:
            body = client.serialize_model(_definition(circuit, calibration, shots, f"qonduit-{key}"))
        except (ValueError, TypeError, KeyError):
            raise DataError("the request holds no circuit that IQM's client can send; prepare it again") from None
        params = {"use_timeslot": "false", "tag": key}
        return self._object(self._post("jobs/{computer}/circuit", params=params, json_data=body))

    def job(self, job: str) -> dict[str, Any]:
        return self._object(self._get(f"jobs/{quote(job, safe='')}"))

    def counts(self, job: str) -> dict[str, Any]:
        """What the job's one circuit measured."""
        found = self._get(f"jobs/{quote(job, safe='')}/artifacts/measurement_counts")
        if not isinstance(found, list) or len(found) != 1:
            raise AwayError("IQM's server answered with counts of another number of circuits than one; try again")
        return self._object(found[0])

    def cancel(self, job: str) -> None:
        self._post(f"jobs/{quote(job, safe='')}/cancel")

    def _get(self, path: str) -> Any:
        import requests

        return self._call(requests.get, path)

    def _post(self, path: str, **more: Any) -> Any:
        import requests

        return self._call(requests.post, path, **more)

    def _call(self, send: Send, path: str, **more: Any) -> Any:
        client = self.connect()
        url = path.replace("{computer}", quote(client.quantum_computer, safe=""))
        response = _translated(lambda: client.send_request(send, url, **more))
        if not response.content:
            return {}
        try:
            return response.json()
        except ValueError:
            raise AwayError("IQM's server sent an answer that is not JSON; try again") from None

    def _object(self, content: Any) -> dict[str, Any]:
        if not isinstance(content, dict):
            raise AwayError("IQM's server sent an answer that its API does not promise; try again")
        return content

    def _made(self) -> IQMServerClient:
        from iqm.iqm_server_client.iqm_server_client import IQMServerClient

        class OneAttempt(IQMServerClient):
            def send_request(self, http_method: Send, *args: Any, **more: Any) -> requests.Response:
                return super().send_request(_checked(http_method), *args, **more)

        if self._name is None and COMPUTER in os.environ:
            # The client would take it from there, and the ledger would not know which machine was used.
            raise UsageError(
                f"{COMPUTER} is set but the device file does not name the machine; write it there as the option "
                "'quantum_computer', or unset the variable"
            )
        token = token_of(self._settings, "IQM")
        return OneAttempt(self._settings.url, quantum_computer=self._name, token=token, timeout=self._timeout_s)


def _definition(circuit: Sequence[Mapping[str, Any]], calibration: str, shots: int, name: str) -> PostJobsRequest:
    from iqm.pulse import Circuit, CircuitOperation  # type: ignore[attr-defined]
    from iqm.station_control.interface.models.circuit import PostJobsRequest

    operations = (CircuitOperation(name=one["name"], locus=tuple(one["locus"]), args=one["args"]) for one in circuit)
    circuits = [Circuit(name=name, instructions=tuple(operations))]
    return PostJobsRequest.model_validate({"circuits": circuits, "calibration_set_id": calibration, "shots": shots})


def _translated(call: Callable[[], T]) -> T:
    """Calls the client; what it raises itself, beside the failures of `_checked`, is about settings or answers."""
    try:
        from exa.common.errors.iqm_error import IQMError
        from iqm.station_control.client.authentication import ClientConfigurationError
    except ImportError as error:
        raise DeviceError(f"the device kind 'iqm' needs iqm-client ({error}); pip install qonduit[iqm]") from None
    try:
        with understood("IQM's server"):
            return call()
    except ClientConfigurationError as error:
        raise UsageError(f"IQM's client does not accept the device's settings ({error}); correct them") from None
    except IQMError as error:
        raise DeviceError(f"IQM's client failed ({error}); see the server's dashboard") from None


def _checked(send: Send) -> Send:
    """The same method of HTTP, whose failures are ours; its name tells the client whether it changes something."""
    import requests

    @functools.wraps(send)
    def once(*args: Any, **more: Any) -> requests.Response:
        try:
            response = send(*args, **more)
        except requests.exceptions.RequestException as error:
            raise _unreached(error) from None
        if response.status_code >= 400:
            raise _refused(response)
        return response

    return once


def _unreached(error: requests.exceptions.RequestException) -> QonduitError:
    import requests
    from urllib3.exceptions import MaxRetryError, NewConnectionError

    problems = requests.exceptions
    if isinstance(error, problems.SSLError):
        return DeviceError("IQM's server has no certificate that this machine trusts; check the address")
    cause = error.args[0] if error.args else None
    refused = isinstance(cause, MaxRetryError) and isinstance(cause.reason, NewConnectionError)
    if refused or isinstance(error, problems.ConnectTimeout):
        return AwayError("IQM's server cannot be reached; check the address or try later", maybe_accepted=False)
    if isinstance(error, problems.Timeout):
        return AwayError("IQM's server did not answer in time; try again, or raise the option 'timeout_s'")
    return AwayError(f"the connection to IQM's server broke ({type(error).__name__}); try again")


def _refused(response: requests.Response) -> QonduitError:
    status = response.status_code
    said, code = _said(response)
    reason = f"IQM's server answered {status}" + (f" ({said})" if said else "")
    if status == 401 or (status == 403 and code != ENDED_BEFORE):
        return AccessError(f"{reason}; check the token and what it allows")
    if status in (423, 429):
        return AwayError(f"{reason}; try later", maybe_accepted=False, retry_after_s=_retry_after_s(response))
    if status in (408, 425) or (status >= 500 and status != 501):
        return AwayError(f"{reason}; try later", retry_after_s=_retry_after_s(response))
    return RefusedError(f"{reason}; correct the request", status)


def _said(response: requests.Response) -> tuple[str, str]:
    """The server's sentence, cut short, and its code."""
    try:
        content = json.loads(response.content)
        return str(content.get("message") or content.get("detail") or "")[:300], str(content.get("error_code"))
    except (ValueError, AttributeError):
        return "", ""


def _retry_after_s(response: requests.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
