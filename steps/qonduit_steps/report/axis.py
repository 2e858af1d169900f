"""Round values for an axis, and the places of iterations along one."""

from __future__ import annotations

import math


def ticks(low: float, high: float, about: int) -> list[tuple[float, str]]:
    """Round values within [low, high] and their texts, in steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    if not (math.isfinite(rough) and rough > 0 and rough > 1e-12 * max(abs(low), abs(high))):
        return []
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= 0.999 * rough)
    values = [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [(value, _text(value, step)) for value in values]


def _text(value: float, step: float) -> str:
    if 1e-4 <= step < 1e6:
        text = f"{value:.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
    else:
        text = f"{value:.3g}"
    return text.replace("-", "−") if float(text) else "0"


def every(count: int, most: int) -> int:
    """Label each n-th of `count` places, so that at most `most` have one; n is 1, 2, 5, 10, 20, …"""
    step = 1
    for factor in _factors():
        step = factor
        if count <= most * factor:
            break
    return step


def _factors() -> list[int]:
    return [base * 10**power for power in range(8) for base in (1, 2, 5)]
