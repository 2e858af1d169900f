"""Neutral atoms simulated in this process: the sweep that a Pasqal machine would run, solved by QuTiP or emu-sv.

Exact up to the solver's tolerance and without noise, so it shows what the method can do; about fourteen atoms is the
limit while somebody waits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from qonduit.devices.device import Capabilities
from qonduit.devices.independence import graph_of
from qonduit.devices.local import LocalDevice, Rows
from qonduit.devices.options import Choice, Flag, Number, Option
from qonduit.devices.request import Request
from qonduit.errors import DataError, UsageError

if TYPE_CHECKING:
    import dimod
    import pulser
    from pulser_simulation import QutipState

DEVICES = ("DigitalAnalogDevice", "AnalogDevice", "MockDevice")


class Pulser(LocalDevice):
    kind = "pulser"
    needs: ClassVar[tuple[str, ...]] = ("pulser", "pulser_simulation")
    known_options: ClassVar[dict[str, Option]] = {
        "device": Choice(
            DEVICES[0],
            DEVICES,
            about="Whose limits hold; AnalogDevice has no detuning map, so that all weights count alike.",
        ),
        "simulator": Choice("qutip", ("qutip", "emu-sv"), about="What solves the sweep; emu-sv is an extra."),
        "max_atoms": Number(14, 1, 25, whole=True, about="The most variables that are simulated."),
        "duration_us": Number(None, 0.1, 100, about="Duration of the sweep; 4 without it, or what the device allows."),
        "approximate": Flag(False, about="Also run a graph that does not embed exactly."),
    }

    def capabilities(self) -> Capabilities:
        atoms = self.options["max_atoms"]
        return Capabilities(self.kind, atoms, "unit disk", online=True, queue_length=0, calibration_id=None)

    def payload(
        self,
        qubo: dimod.BinaryQuadraticModel,
        shots: int,  # noqa: ARG002
        starts: Sequence[Sequence[str]],  # noqa: ARG002
    ) -> dict[str, Any]:
        import dimod

        # Atoms are numbered as the variables of the request, whose order dimod changes.
        graph = graph_of(dimod.BinaryQuadraticModel.from_serializable(qubo.to_serializable()))
        if len(graph.weights) > self.options["max_atoms"]:
            raise DataError(
                f"{len(graph.weights)} variables are more than the {self.options['max_atoms']} atoms that are "
                "simulated; use the kind 'annealer' or 'exact', or raise the option 'max_atoms' and wait"
            )
        if not graph.weights:
            return {"embedding": {}, "sweep": {}}
        import pulser.devices

        from qonduit.devices.sweep import program

        device = getattr(pulser.devices, self.options["device"])
        duration_us, approximate = self.options["duration_us"], self.options["approximate"]
        made = program(graph, device, seed=0, duration_us=duration_us, approximate=approximate)
        return made.payload() | {"simulator": self.options["simulator"]}

    def compute(self, request: Request) -> tuple[Rows, dict[str, Any]]:
        info = {"shots": request.shots, "measured": request.shots, "device": self.options["device"]}
        info |= {name: request.payload[name] for name in ("embedding", "sweep")}
        atoms = request.bqm().num_variables
        if not atoms:
            return np.zeros((request.shots, 0), dtype=np.int8), info
        from pulser import Sequence as PulserSequence

        sequence = PulserSequence.from_abstract_repr(request.payload["sequence"])
        solve = _by_emu_sv if request.payload["simulator"] == "emu-sv" else _by_qutip
        chances = solve(sequence)
        strings = sorted(chances)
        share = np.array([chances[bits] for bits in strings])
        counts = np.random.default_rng(request.seed).multinomial(request.shots, share / share.sum())
        distinct = np.array([[int(bit) for bit in bits] for bits in strings], dtype=np.int8)
        return np.repeat(distinct, counts, axis=0), info | {"simulator": request.payload["simulator"]}


def _by_qutip(sequence: pulser.Sequence[Any]) -> Mapping[str, float]:
    from pulser.backend import StateResult
    from pulser_simulation import QutipBackendV2, QutipConfig

    config = QutipConfig(observables=[StateResult(evaluation_times=[1.0])])
    state = cast("QutipState", QutipBackendV2(sequence, config=config).run().final_state)
    chances: Mapping[str, float] = state.bitstring_probabilities(one_state="r")
    return chances


def _by_emu_sv(sequence: pulser.Sequence[Any]) -> Mapping[str, float]:
    # Two threads are many times slower than one on states this small; torch reads this when it is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        emu_sv = import_module("emu_sv")
    except ImportError:
        raise UsageError("the simulator 'emu-sv' is not installed; pip install 'qonduit[emu-sv]'") from None
    from pulser.backend import StateResult

    config = emu_sv.SVConfig(observables=[StateResult(evaluation_times=[1.0])], gpu=False)
    state = emu_sv.SVBackend(sequence, config=config).run().final_state
    amplitudes = np.asarray(state.vector.cpu()).ravel()
    atoms = int(np.log2(len(amplitudes)))
    return {format(index, f"0{atoms}b"): float(abs(value) ** 2) for index, value in enumerate(amplitudes)}
