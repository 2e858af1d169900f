"""Circuits in IQM's native gates: checked as a server checks them, and run by Aer with the chip's errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from qonduit.emulators.emulator import EmulatorError
from qonduit.emulators.iqm_chip import CZ_NS, GATES, PRX_NS, Chip
from qonduit.errors import DataError

if TYPE_CHECKING:
    from qiskit.circuit.quantumcircuit import QuantumCircuit

LIMITS = {
    "max_circuits_per_job": 500,
    "max_executions_per_job": 100_000_000,
    "max_instructions_per_circuit": 100_000,
    "max_shots_per_circuit": 100_000,
}
# What a state vector on one machine can hold.
MOST_ACTIVE = 24
# With noise every shot is a run of its own; from here on, matrix products are faster than state vectors.
MOST_BY_VECTOR = 11
ARGUMENTS = {"prx": ("angle", "phase"), "cz": (), "measure": ("key",), "barrier": (), "delay": ("duration",)}
WIDTHS = {"prx": 1, "cz": 2}
# What a job may ask for, beside circuits and shots, that this server does as asked.
AS_ASKED = {"heralding_mode": ("none",), "dd_mode": ("disabled",)}


def check_request(chip: Chip, calibration: str, body: Any) -> None:
    """Raises `DataError` with the first thing that a server would refuse."""
    if not isinstance(body, dict) or not isinstance(body.get("circuits"), list) or not body["circuits"]:
        raise DataError("a job needs a list of circuits")
    shots, pinned = body.get("shots", 1), body.get("calibration_set_id")
    if not isinstance(shots, int) or isinstance(shots, bool) or not 1 <= shots <= LIMITS["max_shots_per_circuit"]:
        raise DataError(f"shots must be a whole number from 1 to {LIMITS['max_shots_per_circuit']}")
    if len(body["circuits"]) > LIMITS["max_circuits_per_job"]:
        raise DataError(f"a job has at most {LIMITS['max_circuits_per_job']} circuits")
    if pinned not in (None, calibration):
        raise DataError(f"the calibration set {pinned} is not the current one, {calibration}")
    for name, values in AS_ASKED.items():
        if body.get(name) not in (None, *values):
            raise DataError(f"this emulated server does not have {name} = {body[name]}")
    mapping = mapping_of(body)
    for circuit in body["circuits"]:
        _check_circuit(chip, circuit, mapping)


def mapping_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Physical names of the qubits that a job names otherwise."""
    pairs = body.get("qubit_mapping") or []
    try:
        found = {pair["logical_name"]: pair["physical_name"] for pair in pairs}
    except (TypeError, KeyError):
        raise DataError("qubit_mapping must be a list of logical_name and physical_name") from None
    if len(set(found.values())) < len(found):
        raise DataError("several logical qubits are mapped to the same physical qubit")
    return found


def _check_circuit(chip: Chip, circuit: Any, mapping: Mapping[str, str]) -> None:
    if not isinstance(circuit, dict) or not isinstance(circuit.get("instructions"), list):
        raise DataError("a circuit must have a name and a list of instructions; QIR is not emulated")
    instructions = circuit["instructions"]
    if len(instructions) > LIMITS["max_instructions_per_circuit"]:
        raise DataError(f"a circuit has at most {LIMITS['max_instructions_per_circuit']} instructions")
    keys = []
    for instruction in instructions:
        _check_instruction(chip, instruction, mapping)
        if instruction["name"] == "measure":
            keys.append(instruction["args"]["key"])
    if not keys:
        raise DataError("a circuit must measure something")
    if len(set(keys)) < len(keys):
        raise DataError("measurement keys must be unique within a circuit")


def _check_instruction(chip: Chip, instruction: Any, mapping: Mapping[str, str]) -> None:
    if not isinstance(instruction, dict) or instruction.get("name") not in ARGUMENTS:
        name = instruction.get("name") if isinstance(instruction, dict) else instruction
        raise DataError(f"this machine has no operation '{name}', only {', '.join(ARGUMENTS)}")
    name, locus, arguments = instruction["name"], instruction.get("locus"), instruction.get("args", {})
    if not isinstance(locus, list | tuple) or not locus or not all(isinstance(qubit, str) for qubit in locus):
        raise DataError(f"'{name}' needs a locus, a list of qubits")
    places = [mapping.get(qubit, qubit) for qubit in locus]
    for qubit in places:
        if qubit not in chip.qubits:
            raise DataError(f"this machine has no qubit '{qubit}'")
    if len(set(places)) < len(places) or len(places) != WIDTHS.get(name, len(places)):
        raise DataError(f"'{name}' cannot act on {', '.join(places)}")
    if name == "cz" and not {(places[0], places[1]), (places[1], places[0])} & set(chip.couplers):
        raise DataError(f"this machine has no coupler between {places[0]} and {places[1]}")
    if instruction.get("implementation") not in (None, GATES.get(name)):
        raise DataError(f"'{name}' has no implementation '{instruction['implementation']}' here")
    _check_arguments(name, arguments)


def _check_arguments(name: str, arguments: Any) -> None:
    if not isinstance(arguments, dict) or not set(ARGUMENTS[name]) <= set(arguments):
        raise DataError(f"'{name}' needs the arguments {', '.join(ARGUMENTS[name])}")
    if arguments.get("feedback_key") is not None:
        raise DataError("this machine has no real-time feedback")
    for argument in ARGUMENTS[name]:
        value = arguments[argument]
        if argument == "key" and not (isinstance(value, str) and value):
            raise DataError("a measurement key must be a text that is not empty")
        if argument != "key" and (not isinstance(value, int | float) or not math.isfinite(value)):
            raise DataError(f"the argument '{argument}' of '{name}' must be a finite number")


def run_circuit(chip: Chip, circuit: Any, mapping: Mapping[str, str], shots: int, seed: int, noise: bool) -> Any:
    """The keys with how many bits each has, and for each shot the bits of all keys, in that order."""
    operations = [
        (one["name"], [mapping.get(qubit, qubit) for qubit in one["locus"]], one.get("args", {}))
        for one in circuit["instructions"]
    ]
    active = tuple(qubit for qubit in chip.qubits if any(qubit in locus for _, locus, _ in operations))
    if len(active) > MOST_ACTIVE:
        raise EmulatorError(f"the circuit uses {len(active)} qubits, of which at most {MOST_ACTIVE} can be simulated")
    from qiskit_aer.backends.aer_simulator import AerSimulator

    small = len(active) <= MOST_BY_VECTOR
    simulator = AerSimulator(  # type: ignore[no-untyped-call]
        method="automatic" if small or not noise else "matrix_product_state",
        noise_model=noise_of(chip, active) if noise else None,
        # Threads cost more than they give on so few qubits, most of all on a busy machine; 0 is as many as there are.
        max_parallel_threads=1 if small else 0,
    )
    job = simulator.run(  # type: ignore[no-untyped-call]
        _translated(operations, active), shots=shots, seed_simulator=seed % 2**31, memory=True
    )
    keys = [[arguments["key"], len(locus)] for name, locus, arguments in operations if name == "measure"]
    # Qiskit writes the last bit first.
    return {"keys": keys, "shots": [row[::-1] for row in job.result().get_memory()]}


def _translated(operations: Sequence[tuple[str, list[str], Any]], active: Sequence[str]) -> QuantumCircuit:
    from qiskit.circuit.quantumcircuit import QuantumCircuit

    number = {qubit: index for index, qubit in enumerate(active)}
    bits = sum(len(locus) for name, locus, _ in operations if name == "measure")
    circuit = QuantumCircuit(len(active), bits)
    measured = 0
    for name, locus, arguments in operations:
        qubits = [number[qubit] for qubit in locus]
        if name == "prx":
            circuit.r(arguments["angle"], arguments["phase"], qubits[0])
        elif name == "cz":
            circuit.cz(qubits[0], qubits[1])
        elif name == "measure":
            circuit.measure(qubits, range(measured, measured + len(qubits)))
            measured += len(qubits)
    return circuit


@lru_cache(maxsize=64)
def noise_of(chip: Chip, active: tuple[str, ...]) -> Any:
    """Aer's model of relaxation during each gate, depolarisation by it, and wrong bits, as in IQM's fake backends."""
    aer: Any = import_module("qiskit_aer.noise")
    number = {qubit: index for index, qubit in enumerate(active)}

    def relaxed(qubit: str, duration_ns: float) -> Any:
        return aer.thermal_relaxation_error(chip.t1_ns(qubit), chip.t2_ns(qubit), duration_ns)

    model = aer.NoiseModel(basis_gates=["r", "cz"])
    for qubit in active:
        error = relaxed(qubit, PRX_NS).compose(aer.depolarizing_error(chip.prx_error(qubit), 1))
        model.add_quantum_error(error, "r", [number[qubit]])
        wrong = chip.readout_error(qubit)
        model.add_readout_error([[1 - wrong, wrong], [wrong, 1 - wrong]], [number[qubit]])
    for coupler in chip.couplers:
        for a, b in (coupler, coupler[::-1]):
            if a in number and b in number:
                error = relaxed(a, CZ_NS).tensor(relaxed(b, CZ_NS))
                error = error.compose(aer.depolarizing_error(chip.cz_error(coupler), 2))
                model.add_quantum_error(error, "cz", [number[a], number[b]])
    return model
