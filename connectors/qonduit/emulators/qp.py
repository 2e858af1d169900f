"""D-Wave's format `qp`, as the emulated server reads problems and writes answers in it.

Numbers are little-endian arrays in base64: a bias for every working qubit in the solver's order (NaN where it is not
used), one for every coupler between used qubits, and samples as bits packed to bytes.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.uint8]


def decoded(data: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[dict[int, float], list[list[float]]]:
    """Biases by qubit and couplings [u, v, bias] of a problem in the format `qp`; ValueError says what is wrong."""
    qubits, couplers = described["qubits"], described["couplers"]
    lin, quad = (_array(data[part], "<f8") for part in ("lin", "quad"))
    if len(lin) != len(qubits):
        raise ValueError(f"lin has {len(lin)} values, the solver has {len(qubits)} qubits")
    h = {qubit: float(bias) for qubit, bias in zip(qubits, lin, strict=True) if not math.isnan(bias)}
    between = [pair for pair in couplers if pair[0] in h and pair[1] in h]
    if len(quad) != len(between):
        raise ValueError(f"quad has {len(quad)} values, there are {len(between)} couplers between the active qubits")
    if not np.isfinite([*h.values(), *quad]).all():
        raise ValueError("a bias is not finite")
    return h, [[u, v, float(bias)] for (u, v), bias in zip(between, quad, strict=True)]


def answer(body: Mapping[str, Any], bits: Bits) -> dict[str, Any]:
    """Packed bits of each sample and how often it came, lowest energy first; in the order of the reads if raw."""
    problem = body["problem"]
    raw = problem["params"].get("answer_mode", "histogram") == "raw"
    counts = np.ones(len(bits), dtype=np.intp)
    if not raw:
        bits, counts = np.unique(bits, axis=0, return_counts=True)
    energies = _energies(body, bits)
    order = np.arange(len(bits)) if raw else np.argsort(energies, kind="stable")
    order = order[: problem["params"].get("max_answers")]
    return {
        "format": "qp",
        "active_variables": _base64(np.array([qubit for qubit, _ in body["h"]], dtype="<i4")),
        "energies": _base64(energies[order].astype("<f8")),
        "solutions": _base64(np.packbits(bits[order], axis=1)),
        "num_occurrences": _base64(counts[order].astype("<i4")),
        "num_variables": body["num_qubits"],
        "offset": problem["data"].get("offset") or 0.0,
        "timing": body["timing"],
    }


def rows(answered: Mapping[str, Any]) -> Bits:
    """One row of bits for each read of an answer."""
    active = _array(answered["active_variables"], "<i4")
    counts = _array(answered["num_occurrences"], "<i4")
    packed = _array(answered["solutions"], "u1").reshape(len(counts), -1)
    return np.repeat(np.unpackbits(packed, axis=1)[:, : len(active)], counts, axis=0)


def _energies(body: Mapping[str, Any], bits: Bits) -> npt.NDArray[np.float64]:
    """In the problem as it was sent, before it was scaled and turned into spins."""
    problem = body["problem"]
    lin, quad = (_array(problem["data"][part], "<f8") for part in ("lin", "quad"))
    values = bits.astype(float) if problem["type"] == "qubo" else 2.0 * bits - 1.0
    column = {qubit: index for index, (qubit, _) in enumerate(body["h"])}
    pairs = np.array([(column[int(u)], column[int(v)]) for u, v, _ in body["j"]], dtype=np.intp).reshape(-1, 2)
    linear = values @ lin[~np.isnan(lin)]
    total: npt.NDArray[np.float64] = linear + (values[:, pairs[:, 0]] * values[:, pairs[:, 1]]) @ quad
    return total


def spins(h: Mapping[int, float], j: list[list[float]]) -> tuple[dict[int, float], list[list[float]]]:
    """A QUBO as an Ising problem, without its constant."""
    biases = {qubit: bias / 2 for qubit, bias in h.items()}
    for u, v, bias in j:
        biases[int(u)] += bias / 4
        biases[int(v)] += bias / 4
    return biases, [[u, v, bias / 4] for u, v, bias in j]


def _array(text: str, kind: str) -> npt.NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)


def _base64(values: npt.NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
