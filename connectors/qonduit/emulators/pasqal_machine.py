"""The machine behind the emulated Pasqal cloud: its specifications, what it accepts, and its work, done by QuTiP.

It has the limits of Pulser's AnalogDevice and a detuning map besides, so that weights can be told apart.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from qonduit.emulators.emulator import EmulatorError, Refused

if TYPE_CHECKING:
    import pulser
    from pulser.devices import Device

NAME = "FRESNEL"
EMULATORS = ("EMU_FREE", "EMU_SV", "EMU_MPS")
MOST_SIMULATED = 14
DEFAULT_SHOTS = 1000
# How often a ground-state atom is read as excited, and the other way round; of the order that Pulser's pages use.
FALSE_POSITIVE, FALSE_NEGATIVE = 0.01, 0.05
DRIFT, DRIFTS = 0.002, 10
GPU_SETTINGS = ("num_gpus_to_use", "autosave_dt", "optimize_qubit_ordering", "gpu")


@dataclass(frozen=True)
class Work:
    """One job's sequence, with how it shall be run: `configuration` is only for the cloud's emulators."""

    sequence: str
    variables: dict[str, Any]
    shots: int
    device_type: str
    configuration: str | None


def device(atoms: int | None, calibration: int) -> Device:
    """The machine after so many calibrations: each changes the greatest amplitude a little."""
    from pulser.channels.dmm import DMM
    from pulser.devices import AnalogDevice

    channel = AnalogDevice.channels["rydberg_global"]
    assert channel.max_amp is not None
    drifted = replace(channel, max_amp=channel.max_amp * (1 - DRIFT * (calibration % DRIFTS)))
    detuning_map = DMM(
        clock_period=4,
        min_duration=16,
        max_duration=2**26,
        bottom_detuning=-2 * math.pi * 20,
        total_bottom_detuning=-2 * math.pi * 2000,
    )
    return replace(
        AnalogDevice,
        name=NAME,
        max_atom_num=AnalogDevice.max_atom_num if atoms is None else atoms,
        channel_objects=(drifted,),
        channel_ids=("rydberg_global",),
        dmm_objects=(detuning_map,),
    )


def work_of(batch: dict[str, Any], job: dict[str, Any], machine: Device) -> Work:
    """The work that a job asks for, or a refusal, as the service checks it before it takes a batch."""
    text = job.get("sequence") or batch.get("sequence_builder")
    if not isinstance(text, str):
        raise Refused(400, "neither the batch nor the job has a sequence")
    variables = job.get("variables") or {}
    sequence = _built(text, variables)
    device_type = batch.get("device_type")
    if device_type is None:
        device_type = sequence.device.name
    atoms = len(sequence.register.qubit_ids)
    configuration = batch.get("backend_configuration")
    if device_type in EMULATORS:
        shots = _emulated_shots(configuration, job.get("runs"))
    else:
        shots = _checked_runs(sequence, device_type, job.get("runs"), machine)
    most = min(MOST_SIMULATED, machine.max_atom_num or MOST_SIMULATED)
    if atoms > most:
        raise Refused(400, f"{atoms} atoms are more than the {most} that this emulated server can simulate")
    return Work(text, variables, shots, device_type, configuration)


def _built(text: str, variables: dict[str, Any]) -> pulser.Sequence[Any]:
    from pulser import Sequence

    try:
        sequence = Sequence.from_abstract_repr(text)
        if sequence.is_parametrized() or sequence.is_register_mappable():
            sequence = sequence.build(**variables)
    except Exception as error:
        # Pulser raises many kinds for a sequence that breaks its device's rules; all mean the same here.
        raise Refused(400, f"the sequence is not valid: {error}") from None
    return sequence


def _checked_runs(sequence: pulser.Sequence[Any], device_type: str, runs: Any, machine: Device) -> int:
    if device_type != machine.name:
        raise Refused(400, f"there is no device {device_type}; there are {machine.name}, {', '.join(EMULATORS)}")
    if sequence.device != machine:
        raise Refused(
            400, f"the sequence was made for other specifications of {machine.name} than it has now; fetch them again"
        )
    most = machine.max_runs or 10**6
    if not isinstance(runs, int) or isinstance(runs, bool) or not 1 <= runs <= most:
        raise Refused(400, f"the runs of a job on {machine.name} must be from 1 to {most}")
    return runs


def _emulated_shots(configuration: str | None, runs: Any) -> int:
    try:
        observables = json.loads(configuration or "{}").get("observables", [])
        found = [item.get("num_shots") for item in observables if item.get("observable") == "bitstrings"]
    except (ValueError, AttributeError):
        raise Refused(400, "the backend configuration is not Pulser's") from None
    if isinstance(runs, int) and runs > 0:
        return runs
    return int(found[0]) if found and found[0] else DEFAULT_SHOTS


def run(work: Work, noise: bool, seed: int) -> dict[str, Any]:
    """What the results link gives: a counter, and for the cloud's emulators Pulser's own results too."""
    try:
        sequence = _built(work.sequence, work.variables)
    except Refused as error:
        raise EmulatorError(str(error)) from None
    if work.device_type in EMULATORS and work.configuration is not None:
        return _emulated(sequence, work, seed)
    return {"counter": _measured(sequence, work.shots, noise, seed), "raw": None, "serialised_results": None}


def _measured(sequence: pulser.Sequence[Any], shots: int, noise: bool, seed: int) -> dict[str, int]:
    from pulser.backend import StateResult
    from pulser_simulation import QutipBackendV2, QutipConfig

    config = QutipConfig(observables=[StateResult(evaluation_times=[1.0])])
    state: Any = QutipBackendV2(sequence, config=config).run().final_state
    chances = state.bitstring_probabilities()
    strings = sorted(chances)
    share = np.array([chances[bits] for bits in strings])
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(shots, share / share.sum())
    rows = np.repeat(np.array([[int(bit) for bit in bits] for bits in strings]), counts, axis=0)
    if noise:
        rows ^= rng.random(rows.shape) < np.where(rows == 1, FALSE_NEGATIVE, FALSE_POSITIVE)
    distinct, seen = np.unique(rows, axis=0, return_counts=True)
    return {"".join(map(str, row)): int(count) for row, count in zip(distinct.tolist(), seen, strict=True)}


def _emulated(sequence: pulser.Sequence[Any], work: Work, seed: int) -> dict[str, Any]:
    from pulser_simulation import QutipBackendV2, QutipConfig

    # All of the cloud's emulators are QuTiP here; what only concerns graphics cards is left out.
    asked = {name: value for name, value in json.loads(work.configuration or "{}").items() if name not in GPU_SETTINGS}
    try:
        config = QutipConfig.from_abstract_repr(json.dumps(asked))
    except Exception as error:
        raise EmulatorError(f"the backend configuration cannot be used: {error}") from None
    # Pulser samples from NumPy's global generator; one job runs at a time.
    np.random.seed(seed)
    results = QutipBackendV2(sequence, config=config).run()
    try:
        counter = {bits: int(count) for bits, count in results.final_bitstrings.items()}
    except AttributeError:
        counter = {}
    return {"counter": counter, "raw": None, "serialised_results": results.to_abstract_repr()}
