"""The chips of the emulated IQM server: qubits, couplers and errors, and the calibration data a client reads of them.

Five qubits in a star are IQM's Adonis, with the error figures that IQM publishes in its fake backend; larger chips
repeat these figures. With up to eight qubits a chip is a star around QB3, with more it is a crystal, a square grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from qonduit.errors import UsageError

FEWEST, MOST_QUBITS = 2, 54
LARGEST_STAR = 24
STAR_UP_TO = 8
PRX_NS, CZ_NS = 40.0, 80.0
# Adonis: of QB1 to QB5, and of the couplers of QB1, QB2, QB4 and QB5 to QB3.
T1_NS = (27000.0, 33000.0, 25000.0, 40000.0, 25000.0)
T2_NS = (20000.0, 26000.0, 23000.0, 26000.0, 7000.0)
PRX_ERROR = (0.0006, 0.0054, 0.0001, 0.0, 0.0005)
READOUT_ERROR = (0.021, 0.018, 0.056, 0.021, 0.023)
CZ_ERROR = (0.0335, 0.0344, 0.0192, 0.0373)
GATES = {"prx": "drag_crf", "cz": "tgss", "measure": "constant"}


@dataclass(frozen=True)
class Chip:
    """Errors are depolarizing parameters and chances of a wrong bit, which relaxation during a gate comes on top of."""

    name: str
    qubits: tuple[str, ...]
    couplers: tuple[tuple[str, str], ...]

    def t1_ns(self, qubit: str) -> float:
        return T1_NS[self.qubits.index(qubit) % len(T1_NS)]

    def t2_ns(self, qubit: str) -> float:
        return T2_NS[self.qubits.index(qubit) % len(T2_NS)]

    def prx_error(self, qubit: str) -> float:
        return PRX_ERROR[self.qubits.index(qubit) % len(PRX_ERROR)]

    def readout_error(self, qubit: str) -> float:
        return READOUT_ERROR[self.qubits.index(qubit) % len(READOUT_ERROR)]

    def cz_error(self, coupler: tuple[str, str]) -> float:
        return CZ_ERROR[self.couplers.index(coupler) % len(CZ_ERROR)]

    def static_architecture(self) -> dict[str, Any]:
        connectivity = [list(coupler) for coupler in self.couplers]
        return {
            "dut_label": self.name,
            "qubits": list(self.qubits),
            "computational_resonators": [],
            "connectivity": connectivity,
        }

    def dynamic_architecture(self, calibration: str) -> dict[str, Any]:
        single = [[qubit] for qubit in self.qubits]
        loci = {"prx": single, "cz": [list(coupler) for coupler in self.couplers], "measure": single}
        gates = {
            gate: {
                "implementations": {GATES[gate]: {"loci": places}},
                "default_implementation": GATES[gate],
                "override_default_implementation": {},
            }
            for gate, places in loci.items()
        }
        return {
            "calibration_set_id": calibration,
            "qubits": list(self.qubits),
            "computational_resonators": [],
            "gates": gates,
        }

    def metrics(self) -> list[tuple[str, float, str]]:
        """Name, value and unit of each quality metric, as IQM names them; the same whether noise is on or off."""
        found = []
        for qubit in self.qubits:
            wrong = self.readout_error(qubit)
            found += [
                (f"characterization.model.{qubit}.t1_time", self.t1_ns(qubit) * 1e-9, "s"),
                (f"characterization.model.{qubit}.t2_time", self.t2_ns(qubit) * 1e-9, "s"),
                (f"metrics.rb.prx.{GATES['prx']}.{qubit}.fidelity:par=d1", 1 - self.prx_error(qubit), ""),
                (f"metrics.ssro.measure.{GATES['measure']}.{qubit}.fidelity", 1 - wrong, ""),
                (f"metrics.ssro.measure.{GATES['measure']}.{qubit}.error_0_to_1", wrong, ""),
                (f"metrics.ssro.measure.{GATES['measure']}.{qubit}.error_1_to_0", wrong, ""),
            ]
        for coupler in self.couplers:
            name = f"metrics.irb.cz.{GATES['cz']}.{'__'.join(coupler)}.fidelity:par=d2"
            found.append((name, 1 - self.cz_error(coupler), ""))
        return found


def chip(qubits: int | None, topology: str | None) -> Chip:
    """Adonis, or another chip by its number of qubits and its topology, `star` or `crystal`."""
    count = 5 if qubits is None else qubits
    shape = topology or ("star" if count <= STAR_UP_TO else "crystal")
    if shape not in ("star", "crystal"):
        raise UsageError(f"--topology: the emulated iqm has no '{shape}'; choose star or crystal")
    most = LARGEST_STAR if shape == "star" else MOST_QUBITS
    if not FEWEST <= count <= most:
        raise UsageError(f"--qubits: an emulated iqm {shape} has {FEWEST} to {most} qubits, not {count}")
    names = tuple(f"QB{number}" for number in range(1, count + 1))
    couplers = _star(count) if shape == "star" else _crystal(count)
    name = "adonis" if (shape, count) == ("star", 5) else f"{shape}{count}"
    return Chip(name, names, tuple((names[a], names[b]) for a, b in couplers))


def _star(count: int) -> list[tuple[int, int]]:
    centre = min(2, count - 1)
    return [(min(centre, leaf), max(centre, leaf)) for leaf in range(count) if leaf != centre]


def _crystal(count: int) -> list[tuple[int, int]]:
    columns = math.ceil(math.sqrt(count))
    across = [(qubit, qubit + 1) for qubit in range(count - 1) if (qubit + 1) % columns]
    down = [(qubit, qubit + columns) for qubit in range(count - columns)]
    return sorted(across + down)
