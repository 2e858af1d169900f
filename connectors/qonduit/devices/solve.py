"""Solving one QUBO on a device, from the question to the chosen solution: what `qonduit-solve` and `qonduit solve` do.

A device that computes here is simply run. Any other is asked through the ledger, so that nothing is bought twice, or
through the spool where the step's location has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from qonduit.devices.device import Device
from qonduit.devices.execute import Executed, Execution, Memory, Say, Watch
from qonduit.devices.ledger import Ledger, ledger_path, run_name
from qonduit.devices.patience import Patience
from qonduit.devices.request import Question, Request, Result, seed_of_round
from qonduit.devices.settings import Settings
from qonduit.devices.spool import Round, Spool
from qonduit.errors import DataError, DeviceError, StoppedError

if TYPE_CHECKING:
    import dimod

    from qonduit.devices.answer import Answer


Make = Callable[[], Request]


@runtime_checkable
class Variational(Protocol):
    """A device that may ask again with what it has learned."""

    def refine(self, rounds: Sequence[Round]) -> Request | None:
        """The next request, None when there is no more to learn; its seed is that of its round (`seed_of_round`)."""


@dataclass(frozen=True)
class Solved:
    """The samples, the solution chosen among them, and where they come from."""

    samples: dimod.SampleSet
    answer: Answer
    timing: dict[str, float]
    jobs: tuple[str, ...] = ()
    reused: bool = False


@dataclass(frozen=True)
class Solver:
    """Solves problems on the device of the settings; `watch` and `say` are for whoever looks on."""

    device: Device
    settings: Settings
    spool: Spool | None = None
    patience: Patience = field(default_factory=Patience)
    watch: Watch = lambda _: None
    say: Say = lambda _: None

    def solve(
        self, bqm: dimod.BinaryQuadraticModel, shots: int, seed: int, starts: Sequence[Sequence[str]] = ()
    ) -> Solved:
        if not bqm.num_variables:
            return _chosen(bqm, _nothing_to_select(bqm), starts, {})
        question = Question(self.device.kind, bqm.to_serializable(), shots, seed)

        def make() -> Request:
            self._check_fits(bqm.num_variables)
            return self.device.prepare(bqm, shots, seed, starts)

        if self.spool is not None and not self.device.local:
            return self._spooled(self.spool, bqm, question, make, starts)
        try:
            executed = self._executed(question, make)
        except KeyboardInterrupt:
            if self.device.local:
                raise
            raise StoppedError("interrupted; a job that was sent goes on: run again to get its result") from None
        timing = {name: sum(getattr(one, name) for one in executed) for name in ("prepare_s", "queue_s", "execute_s")}
        begun = perf_counter()
        samples = self._best(bqm, [(one.request, one.result) for one in executed])
        timing["decode_s"] = perf_counter() - begun
        jobs = tuple(one.job for one in executed if not self.device.local)
        return _chosen(bqm, samples, starts, timing, jobs, all(one.reused for one in executed))

    def _executed(self, question: Question, make: Make) -> list[Executed]:
        """Every round's execution; all but variational work is one round."""
        memory = None
        if not self.device.local:
            memory = Memory(Ledger(ledger_path()), self.settings.identity(self.device.known_options), run_name())
        try:
            execution = Execution(
                self.device, memory, self.patience, self.settings.wait_s, watch=self.watch, say=self.say
            )
            done = [execution.run(question, make)]
            while isinstance(self.device, Variational):
                rounds = [(one.request, one.result) for one in done]
                known = replace(question, seed=seed_of_round(question.seed, len(rounds)))
                # What was bought before needs no call, not even to prepare it.
                asked = known if execution.finished(known) else self._next(rounds)
                if asked is None:
                    break
                # Prepared anew if it has become stale; the same question, since only the calibration has changed.
                done.append(execution.run(asked, partial(self._refined, asked, rounds)))
            return done
        finally:
            if memory is not None:
                memory.ledger.close()

    def _spooled(
        self,
        spool: Spool,
        bqm: dimod.BinaryQuadraticModel,
        question: Question,
        make: Make,
        starts: Sequence[Sequence[str]],
    ) -> Solved:
        rounds = spool.rounds(question)
        request = self._next(rounds) if rounds else self.patience.read(make, self.say)
        if request is not None:
            spool.ask(request)
        begun = perf_counter()
        samples = self._best(bqm, rounds)
        return _chosen(bqm, samples, starts, {"decode_s": perf_counter() - begun})

    def _next(self, rounds: Sequence[Round]) -> Request | None:
        device = self.device
        return self.patience.read(partial(device.refine, rounds), self.say) if isinstance(device, Variational) else None

    def _refined(self, known: Question, rounds: Sequence[Round]) -> Request:
        request = self._next(rounds)
        if request is None or request.digest() != known.digest():
            raise DeviceError(f"the device '{self.device.kind}' asks another question than before; run again")
        return request

    def _best(self, bqm: dimod.BinaryQuadraticModel, rounds: Sequence[tuple[Request, Result]]) -> dimod.SampleSet:
        """The samples of the round whose mean energy is lowest."""
        decoded = [self.device.decode(request, result) for request, result in rounds]
        for samples in decoded:
            if set(samples.variables) != set(bqm.variables):
                raise DeviceError(f"the samples of '{self.device.kind}' are of another problem; see the ledger")
        return min(decoded, key=_mean_energy)

    def _check_fits(self, variables: int) -> None:
        can = self.device.capabilities()
        if not can.online:
            raise DeviceError(f"the device '{can.kind}' is offline; try later or set QONDUIT_DEVICE to another")
        if can.qubits is not None and variables > can.qubits:
            raise DataError(
                f"{variables} variables do not fit the {can.qubits} qubits of '{can.kind}'; "
                "use a device with more, or the kind annealer or exact"
            )


def _mean_energy(samples: dimod.SampleSet) -> float:
    import numpy as np

    record = samples.record
    return float(np.average(record.energy, weights=record.num_occurrences))


def _chosen(
    bqm: dimod.BinaryQuadraticModel,
    samples: dimod.SampleSet,
    starts: Sequence[Sequence[str]],
    timing: dict[str, float],
    jobs: tuple[str, ...] = (),
    reused: bool = False,
) -> Solved:
    from qonduit.devices.answer import choose

    begun = perf_counter()
    answer = choose(bqm, samples, starts)
    spent = dict.fromkeys(("prepare_s", "queue_s", "execute_s", "decode_s"), 0.0) | timing
    spent["decode_s"] += perf_counter() - begun
    return Solved(samples, answer, spent, jobs, reused)


def _nothing_to_select(bqm: dimod.BinaryQuadraticModel) -> dimod.SampleSet:
    """The empty selection, for which no device need be asked."""
    import numpy as np

    from qonduit.devices.samples import sample_set

    return sample_set(bqm, np.zeros((1, 0), dtype=np.int8), {"proved_optimal": True})
