"""Pasqal's own HTTP client with each call sent once, bounded in time, and its failures as `qonduit.errors`.

The client repeats calls by itself, submissions included, for more than a minute; here a lost answer to a submission is
never followed by a second one. Imported by `pasqal` only when it first talks to the vendor, since it loads Pulser.
"""

from __future__ import annotations

import gzip
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

import requests
from urllib3.exceptions import NewConnectionError

from qonduit.devices.vendor import is_token, understood
from qonduit.errors import AccessError, AwayError, DataError, DeviceError

# Its import makes Python show every deprecation of every package from then on; that is not its to decide.
with warnings.catch_warnings():
    from pasqal_cloud.authentication import TokenProvider
    from pasqal_cloud.endpoints import Endpoints, TokenProviderConf
    from pasqal_cloud.http_client import HTTPClient

EARLY_S = 60.0  # a token is renewed this long before it expires
LONGEST_REASON = 300
PAGE = 100


class NotThereError(DeviceError):
    """The service does not know what was asked for (404)."""


@dataclass(frozen=True)
class Account:
    """Who asks; without `username` the secret is an access token, with it the password."""

    secret: Callable[[], str]
    username: str | None
    login: TokenProviderConf
    timeout_s: float


class Credential(TokenProvider):
    """The access token, fetched when it is first needed and again when it has expired."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._token: str | None = None
        self._until = 0.0

    def get_token(self) -> str:
        if self._token is None or time.monotonic() >= self._until:
            self._token, lasts_s = self._fresh()
            self._until = time.monotonic() + lasts_s - min(EARLY_S, lasts_s / 2)
        return self._token

    def renew(self) -> bool:
        """Whether there is another token than the one that was just refused."""
        refused, self._token = self._token, None
        return self.get_token() != refused

    def _fresh(self) -> tuple[str, float]:
        secret, account = self._account.secret(), self._account
        if account.username is None:
            return secret, float("inf")
        form = {
            "client_id": account.login.public_client_id,
            "grant_type": account.login.grant_type,
            "realm": account.login.realm,
            "audience": account.login.audience,
            "username": account.username,
            "password": secret,
        }
        try:
            answer = answered(lambda: requests.post(account.login.token_endpoint, form, timeout=account.timeout_s))
            with understood("Pasqal"):
                token, lasts_s = answer["access_token"], float(answer.get("expires_in") or 0.0)
                if not is_token(token):
                    raise ValueError("no access token")
            return token, lasts_s
        except DataError as error:
            raise AccessError(f"Pasqal refused the login of {account.username} ({error}); check the password") from None
        except AwayError as error:
            # A login that failed has submitted nothing.
            raise AwayError(str(error), maybe_accepted=False, retry_after_s=error.retry_after_s) from None


class Connection(HTTPClient):
    def __init__(self, account: Account, endpoints: Endpoints, project_id: str) -> None:
        self._credential = Credential(account)
        super().__init__(project_id=project_id, token_provider=self._credential, endpoints=endpoints)
        self._timeout_s = account.timeout_s

    def _authenticated_request(
        self,
        method: str,
        url: str,
        payload: Any = None,
        params: Any = None,
        gziped: bool = False,
    ) -> Any:
        headers = {"content-type": "application/json", "User-Agent": self.user_agent}
        body = None if payload is None else json.dumps(payload).encode()
        if body is not None and gziped and self.allow_gzip_request_body:
            headers["Content-Encoding"] = "gzip"
            body = gzip.compress(body, mtime=0)

        def send() -> requests.Response:
            # A redirected submission would be a second one.
            return self.session.request(
                method,
                url,
                params=params,
                data=body,
                headers=headers,
                auth=self.authenticator,
                timeout=self._timeout_s,
                allow_redirects=method == "GET",
            )

        def send_with_a_valid_token() -> requests.Response:
            response = send()
            # What was refused for its token was not accepted, so that it may be sent with the token that came after.
            return send() if response.status_code == 401 and self._credential.renew() else response

        answer = answered(send_with_a_valid_token)
        if "data" not in answer:
            raise AwayError("Pasqal's answer holds no data; ask again later")
        return answer

    def _download_results(self, results_link: str) -> Any:
        return answered(lambda: self.session.get(results_link, timeout=self._timeout_s))

    def _request_all_pages(
        self, method: str, url: str, payload: Any = None, params: Any = None
    ) -> list[dict[str, Any]]:
        """The client's own never ends if the service's count does not."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self._authenticated_request(method, url, payload, {**(params or {}), "offset": len(found)})
            with understood("Pasqal"):
                page, about = answer["data"], answer.get("pagination")
                if not isinstance(page, list) or not all(isinstance(item, dict) for item in page):
                    raise TypeError("no list of objects")
                found += page
                if not about or len(found) >= about["total"]:
                    return found
                if not page:
                    raise ValueError("a page is missing")

    def find_batches(self, tag: str) -> list[dict[str, Any]]:
        return self._request_all_pages("GET", self._get_url("get_batches"), params={"tag": tag, "limit": PAGE})


def answered(send: Callable[[], requests.Response]) -> dict[str, Any]:
    """The JSON object that came back, or the error that says what the failure means."""
    try:
        response = send()
    except requests.ConnectTimeout:
        raise AwayError("Pasqal's service cannot be reached; try later", maybe_accepted=False) from None
    except requests.Timeout:
        raise AwayError("Pasqal's service did not answer in time; raise the option 'timeout_s' or try later") from None
    except requests.ConnectionError as error:
        refused = isinstance(getattr(error.args[0] if error.args else None, "reason", None), NewConnectionError)
        what = "refused the connection or is not known" if refused else "broke the connection"
        raise AwayError(f"Pasqal's service {what}; try later", maybe_accepted=not refused) from None
    except requests.RequestException as error:
        raise DeviceError(f"Pasqal's service cannot be used ({type(error).__name__}); check the url") from None
    if not response.ok or response.is_redirect:
        _refused(response)
    try:
        content = response.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise AwayError("Pasqal's answer is no JSON object; ask again later")
    return content


def _refused(response: requests.Response) -> NoReturn:
    status, reason = response.status_code, _reason(response)
    if status in (401, 403):
        raise AccessError(f"Pasqal refused the credentials ({status}: {reason}); check the token file and the project")
    if status == 404:
        raise NotThereError(f"Pasqal knows no such thing ({reason}); check the id")
    if status in (423, 429):
        sentence = f"Pasqal asks to come back later ({status}: {reason})"
        raise AwayError(sentence, maybe_accepted=False, retry_after_s=_retry_after_s(response))
    if status >= 500 or status in (408, 425):
        sentence = f"Pasqal's service failed ({status}: {reason}); try later"
        raise AwayError(sentence, retry_after_s=_retry_after_s(response))
    if 400 <= status < 500:
        raise DataError(f"Pasqal refused the request ({status}: {reason}); change it")
    raise DeviceError(f"Pasqal answered with status {status}, which is not of its API; check the url")


def _reason(response: requests.Response) -> str:
    """What the vendor says, from JSend's or OAuth's fields."""
    try:
        content = response.json()
        data = content.get("data")
        said = data.get("description") if isinstance(data, dict) else None
        said = said or content.get("message") or content.get("error_description") or content.get("error")
    except (ValueError, AttributeError):
        said = None
    return " ".join(str(said or response.reason or "no reason given").split())[:LONGEST_REASON]


def _retry_after_s(response: requests.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
