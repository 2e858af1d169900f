"""The gate model on this machine: a QAOA circuit, sampled without noise by Aer.

The circuit is written in gates that Aer takes as they are, so that nothing is transpiled. The same request gives the
same samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qonduit.devices.angles import OPTIONS, ansatz_of, next_ansatz
from qonduit.devices.device import Capabilities
from qonduit.devices.local import LocalDevice, Rows
from qonduit.devices.options import Number, Option
from qonduit.devices.qaoa import Ansatz
from qonduit.devices.request import Request, Result, seed_of_round
from qonduit.errors import DataError, DeviceError

if TYPE_CHECKING:
    import dimod
    from qiskit.circuit.quantumcircuit import QuantumCircuit


class Gate(LocalDevice):
    kind = "gate"
    known_options: ClassVar[dict[str, Option]] = {
        **OPTIONS,
        "qubits": Number(24, 1, 30, whole=True, about="The most variables; each doubles memory and time."),
    }

    def capabilities(self) -> Capabilities:
        limit = self.options["qubits"]
        return Capabilities(self.kind, limit, "complete", online=True, queue_length=0, calibration_id=None)

    def payload(self, qubo: dimod.BinaryQuadraticModel, shots: int, starts: Sequence[Sequence[str]]) -> dict[str, Any]:  # noqa: ARG002
        if qubo.num_variables > self.options["qubits"]:
            raise DataError(
                f"{qubo.num_variables} variables do not fit the {self.options['qubits']} qubits of '{self.kind}'; "
                "use the device kind 'annealer' or 'exact', or raise the option 'qubits'"
            )
        return ansatz_of(qubo, self.options).to_json()

    def compute(self, request: Request) -> tuple[Rows, dict[str, Any]]:
        ansatz = Ansatz.from_json(request.payload)
        rows = _sampled(ansatz, request.shots, request.seed)
        info = {
            "layers": ansatz.angles.layers,
            "gammas": list(ansatz.angles.gammas),
            "betas": list(ansatz.angles.betas),
        }
        return rows, {**info, "shots": request.shots, "measured": len(rows)}

    def refine(self, rounds: Sequence[tuple[Request, Result]]) -> Request | None:
        """The next round, if the angles are to be found on the device and there is one left."""
        if self.options["angles"] != "device" or len(rounds) >= self.options["rounds"]:
            return None
        first = rounds[0][0]
        tried = [
            (Ansatz.from_json(request.payload), np.array(result.payload["rows"], dtype=np.int8))
            for request, result in rounds
        ]
        seed = seed_of_round(first.seed, len(rounds))
        return Request(self.kind, first.qubo, first.shots, seed, next_ansatz(tried).to_json())


def _sampled(ansatz: Ansatz, shots: int, seed: int) -> Rows:
    qubits = len(ansatz.ising.fields)
    if not qubits:
        return np.zeros((shots, 0), dtype=np.int8)
    try:
        from qiskit.exceptions import QiskitError
        from qiskit_aer.backends.aer_simulator import AerSimulator
    except ImportError as error:
        raise DeviceError(f"the device kind 'gate' needs Aer ({error}); pip install qonduit[gate]") from None

    simulator = AerSimulator(method="statevector")  # type: ignore[no-untyped-call]
    aer_seed = seed_of_round(seed, 0) % 2**31
    try:
        job = simulator.run(  # type: ignore[no-untyped-call]
            _circuit(ansatz), shots=shots, seed_simulator=aer_seed, memory=True
        )
        measured = job.result().get_memory()
    except QiskitError as error:
        raise DeviceError(f"Aer could not simulate {qubits} qubits ({error}); use the device kind 'annealer'") from None
    # Qiskit writes the last qubit first.
    return np.array([[bit == "1" for bit in reversed(row)] for row in measured], dtype=np.int8)


def _circuit(ansatz: Ansatz) -> QuantumCircuit:
    from qiskit.circuit.quantumcircuit import QuantumCircuit

    ising, angles = ansatz.ising, ansatz.angles
    qubits = len(ising.fields)
    circuit = QuantumCircuit(qubits, qubits)
    circuit.h(range(qubits))
    for gamma, beta in zip(angles.gammas, angles.betas, strict=True):
        for qubit, field in enumerate(ising.fields):
            circuit.rz(2 * gamma * field, qubit)
        for i, j in ising.pairs():
            circuit.rzz(2 * gamma * ising.couplings[i, j], i, j)
        circuit.rx(2 * beta, range(qubits))
    circuit.measure(range(qubits), range(qubits))
    return circuit
