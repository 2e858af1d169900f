"""The options of a kind of device: each says what it accepts, to a person and as JSON Schema.

A kind lists its own in `known_options`; the device file is checked against them and its published schema is made of
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Option(Protocol):
    @property
    def about(self) -> str: ...

    @property
    def default(self) -> Any: ...

    @property
    def waiting(self) -> bool:
        """Only says how long to wait: with another value it is the same device."""

    def accepts(self, value: object) -> bool: ...

    def schema(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Number:
    """A number in [low, high]; a default of None leaves the choice to the device."""

    default: float | None
    low: float
    high: float
    whole: bool = False
    about: str = ""
    waiting: bool = False

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        return self.low <= value <= self.high

    def schema(self) -> dict[str, Any]:
        return {"type": "integer" if self.whole else "number", "minimum": self.low, "maximum": self.high}

    def __str__(self) -> str:
        return f"{'a whole number' if self.whole else 'a number'} from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    default: str | None
    choices: tuple[str, ...]
    about: str = ""
    waiting: bool = False

    def accepts(self, value: object) -> bool:
        return value in self.choices

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.choices)}

    def __str__(self) -> str:
        return f"one of {', '.join(self.choices)}"


@dataclass(frozen=True)
class Text:
    """A name or an address; never a secret."""

    default: str | None
    about: str = ""
    waiting: bool = False

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and bool(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}

    def __str__(self) -> str:
        return "a text that is not empty"


@dataclass(frozen=True)
class Flag:
    default: bool
    about: str = ""
    waiting: bool = False

    def accepts(self, value: object) -> bool:
        return isinstance(value, bool)

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def __str__(self) -> str:
        return "true or false"


Options = Mapping[str, Option]
