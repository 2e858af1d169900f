"""The pulse sequence that leads atoms into a maximum-weight independent set: an adiabatic sweep of the detuning.

`pulser` and `pasqal` build it here for the device it will run on, as Pulser's abstract representation. The figures
were chosen by measurement on overlap graphs of up to eleven clusters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from qonduit.devices.independence import Graph
from qonduit.devices.register import Embedding, Limits, embed
from qonduit.errors import DataError, DeviceError

if TYPE_CHECKING:
    from pulser import Register, Sequence
    from pulser.devices import Device
    from pulser.devices._device_datacls import BaseDevice
    from pulser.register import RegisterLayout

DURATION_US = 4.0
RAMP, HOLD = 0.2, 0.15  # shares of the duration: the amplitude's ramps, the detuning's first and last rest
# In units of the interaction at the blockade radius, which is also the amplitude.
FIRST_DETUNING, LAST_DETUNING = -2.0, 4.0
BELOW_EDGE = 0.8  # an atom gains less by its detuning than the weakest blockade costs it
WEAKEST_DRIVE = 1.0  # rad/µs: a weaker one is not adiabatic within microseconds
# For virtual devices, which have no limits of their own.
MIN_DISTANCE_UM, MAX_RADIUS_UM, MAX_AMPLITUDE = 4.0, 100.0, 15.7


@dataclass(frozen=True)
class Sweep:
    """The drive that was chosen; angular frequencies in rad/µs."""

    duration_us: float
    amplitude: float
    first_detuning: float
    last_detuning: float
    weights: str


@dataclass(frozen=True)
class Program:
    """A sequence for one device, with what an answer's reader should know of it."""

    sequence: str
    embedding: Embedding
    sweep: Sweep

    def payload(self) -> dict[str, Any]:
        """The part of a request that both kinds have."""
        return {
            "sequence": self.sequence,
            "coordinates_um": [list(place) for place in self.embedding.coordinates_um],
            "embedding": self.embedding.summary(),
            "sweep": asdict(self.sweep),
        }


def program(graph: Graph, device: BaseDevice, *, seed: int, duration_us: float | None, approximate: bool) -> Program:
    """The whole CPU part: a register and a sweep that this device allows, or a sentence that says why not."""
    embedding = embed(graph, limits_of(device), seed)
    if not embedding.exact and not approximate:
        raise DataError(
            f"the overlap graph is no unit-disk graph that was found: {len(embedding.missing)} edges would be missing "
            f"and {len(embedding.false)} false; use the kind 'annealer', 'exact' or 'dwave', or set the option "
            "'approximate' to true"
        )
    sweep = choose_sweep(graph, embedding, device, duration_us)
    try:
        sequence = build(graph, embedding, sweep, device).to_abstract_repr()
    except (ValueError, TypeError, RuntimeError) as error:
        raise DeviceError(f"the device {device.name} does not allow the sweep ({error}); try another device") from None
    return Program(sequence, embedding, sweep)


def limits_of(device: BaseDevice) -> Limits:
    strongest = _rydberg(device)[1].max_amp or MAX_AMPLITUDE
    coefficient = device.interaction_coeff
    layout = _fixed_layout(device)
    atoms = device.max_atom_num
    if layout is not None:
        room = int(layout.number_of_traps * device.max_layout_filling)
        atoms = room if atoms is None else min(atoms, room)
    return Limits(
        min_distance_um=max(device.min_atom_distance, MIN_DISTANCE_UM),
        max_radius_um=device.max_radial_distance or MAX_RADIUS_UM,
        max_atoms=atoms,
        least_blockade_um=float((coefficient / strongest) ** (1 / 6)),
        most_blockade_um=float((coefficient / min(WEAKEST_DRIVE, strongest)) ** (1 / 6)),
        traps=None if layout is None else tuple((float(x), float(y)) for x, y in layout.coords),
    )


def choose_sweep(graph: Graph, embedding: Embedding, device: BaseDevice, duration_us: float | None) -> Sweep:
    channel = _rydberg(device)[1]
    unit = float(device.interaction_coeff / embedding.blockade_radius_um**6)
    amplitude = min(unit, channel.max_amp or MAX_AMPLITUDE)
    longest = (device.max_sequence_duration or channel.max_duration or 10**9) / 1000
    weighted = len(set(graph.weights)) > 1 and bool(device.dmm_channels)
    last = min(LAST_DETUNING * unit, max(unit, BELOW_EDGE * _weakest_blockade(graph, embedding, device, weighted)))
    allowed = channel.max_abs_detuning or np.inf
    last = min(last, allowed, _deepest(graph, device) if weighted else np.inf)
    return Sweep(
        duration_us=min(DURATION_US if duration_us is None else duration_us, longest),
        amplitude=amplitude,
        first_detuning=max(FIRST_DETUNING * unit, -allowed),
        last_detuning=float(last),
        weights="detuning map" if weighted else "equal" if len(set(graph.weights)) <= 1 else "ignored",
    )


def build(graph: Graph, embedding: Embedding, sweep: Sweep, device: BaseDevice) -> Sequence[Any]:
    from pulser import InterpolatedWaveform, Pulse, Sequence

    register = _register(embedding, device)
    name, channel = _rydberg(device)
    period = channel.clock_period
    duration = int(1000 * sweep.duration_us) // period * period
    sequence = Sequence(register, device)
    if sweep.weights == "detuning map":
        sequence.config_detuning_map(
            register.define_detuning_map({f"q{atom}": lack for atom, lack in enumerate(_lacks(graph))}), "dmm_0"
        )
    sequence.declare_channel("sweep", name)
    rests = [0.0, HOLD, 1 - HOLD, 1.0]
    first, last, top = sweep.first_detuning, sweep.last_detuning, sweep.amplitude
    # A waveform's ends must not be 0 for some of Pulser's checks of its average; nor need they be more.
    amplitude = InterpolatedWaveform(duration, [1e-9, top, top, 1e-9], times=[0.0, RAMP, 1 - RAMP, 1.0])
    sequence.add(Pulse(amplitude, InterpolatedWaveform(duration, [first, first, last, last], times=rests), 0), "sweep")
    if sweep.weights == "detuning map":
        depth = -last * _spread(graph)
        lower = InterpolatedWaveform(duration, [-1e-9, -1e-9, depth, depth], times=rests)
        sequence.add_dmm_detuning(lower, "dmm_0")
    sequence.measure("ground-rydberg")
    return sequence


def rows_of(counts: dict[str, int], atoms: int) -> np.ndarray[Any, np.dtype[np.int8]]:
    """A row for each shot of a counter of bit strings; a string of another width or with other letters is refused."""
    for bits, count in counts.items():
        if len(bits) != atoms or not set(bits) <= {"0", "1"} or not isinstance(count, int) or count < 0:
            raise DeviceError(f"the device answered with {bits!r}: {count!r} where {atoms} bits and a count were due")
    distinct = np.array([[int(bit) for bit in bits] for bits in counts], dtype=np.int8).reshape(len(counts), atoms)
    return np.repeat(distinct, list(counts.values()), axis=0)


def _rydberg(device: BaseDevice) -> tuple[str, Any]:
    for name, channel in device.channels.items():
        if channel.basis == "ground-rydberg" and channel.addressing == "Global":
            return name, channel
    raise DataError(f"the device {device.name} has no global Rydberg channel; choose another device")


def _fixed_layout(device: BaseDevice) -> RegisterLayout | None:
    """The largest layout of a device that takes only those it is calibrated for."""
    if not device.requires_layout or getattr(device, "accepts_new_layouts", True):
        return None
    layouts: Iterable[RegisterLayout] = getattr(device, "pre_calibrated_layouts", ())
    largest = max(layouts, key=lambda layout: layout.number_of_traps, default=None)
    if largest is None:
        raise DataError(f"the device {device.name} accepts no new layout and names none; choose another device")
    return largest


def _register(embedding: Embedding, device: BaseDevice) -> Register:
    from pulser import Register

    places = np.array(embedding.coordinates_um)
    register = Register.from_coordinates(places, center=False, prefix="q")
    layout = _fixed_layout(device)
    if layout is not None:
        traps = layout.get_traps_from_coordinates(*places)
        return cast("Register", layout.define_register(*traps, qubit_ids=register.qubit_ids))
    return register.with_automatic_layout(cast("Device", device)) if device.requires_layout else register


def _weakest_blockade(graph: Graph, embedding: Embedding, device: BaseDevice, weighted: bool) -> float:
    """The last detuning of the heaviest atom at which an edge's lighter end gains what the blockade costs it."""
    places = np.array(embedding.coordinates_um)
    share = _shares(graph) if weighted else np.ones(len(graph.weights))
    kept = [edge for edge in graph.edges() if edge not in set(embedding.missing)]
    costs = [
        device.interaction_coeff / np.linalg.norm(places[u] - places[v]) ** 6 / max(min(share[u], share[v]), 1e-6)
        for u, v in kept
    ]
    return float(min(costs, default=np.inf))


def _deepest(graph: Graph, device: BaseDevice) -> float:
    """The greatest last detuning whose differences the detuning map can make."""
    dmm = device.dmm_channels["dmm_0"]
    spread, total = _spread(graph), sum(_lacks(graph))
    each = -dmm.bottom_detuning / spread if dmm.bottom_detuning is not None else np.inf
    together = -dmm.total_bottom_detuning / (spread * total) if dmm.total_bottom_detuning is not None else np.inf
    return float(min(each, together))


def _shares(graph: Graph) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Weights over the greatest."""
    weights = np.array(graph.weights)
    return weights / (weights.max() if weights.max() > 0 else np.abs(weights).max() or 1.0)


def _spread(graph: Graph) -> float:
    shares = _shares(graph)
    return float(shares.max() - shares.min())


def _lacks(graph: Graph) -> list[float]:
    """What each weight lacks of the greatest, in [0, 1]: the detuning map's weights."""
    shares = _shares(graph)
    return [float(lack) for lack in (shares.max() - shares) / (shares.max() - shares.min())]
