"""A partition of the points by one method, and its file `labels.npz`.

Written by `qonduit-cluster`, read by every step after it. Label −1 is noise; clusters are 0 … k−1.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qonduit.errors import DataError
from qonduit_steps.command import existing
from qonduit_steps.outputs import Outputs

Labels = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Partition:
    labels: Labels
    method: str
    parameters: dict[str, Any]
    iteration: int
    seed: int

    @property
    def clusters(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    @property
    def noise(self) -> int:
        return int(np.count_nonzero(self.labels < 0))


def write_partition(outputs: Outputs, path: Path, partition: Partition, option: str) -> None:
    write_npz(
        outputs,
        path,
        option,
        labels=partition.labels.astype(np.int32),
        method=np.array(partition.method),
        parameters=np.array(json.dumps(partition.parameters, sort_keys=True)),
        iteration=np.array(partition.iteration),
        seed=np.array(partition.seed),
    )


def write_npz(outputs: Outputs, path: Path, option: str, **arrays: npt.NDArray[Any]) -> None:
    """Compressed, under exactly this name, and the same bytes for the same arrays."""
    outputs.write(path, option, lambda stream: np.savez_compressed(stream, allow_pickle=False, **arrays))


def read_partition(path: Path, option: str, points: int | None = None) -> Partition:
    """Reads and checks one `labels.npz`; with `points`, also that it labels that many points."""
    fields = read_npz(path, option, ("labels", "method", "parameters", "iteration", "seed"))
    labels = fields["labels"]
    if labels.ndim != 1 or labels.dtype.kind != "i" or labels.min(initial=0) < -1:
        raise DataError(
            f"{option}: {path} holds no labels (one whole number ≥ −1 a point); make it with qonduit-cluster"
        )
    if points is not None and len(labels) != points:
        raise DataError(f"{option}: {path} labels {len(labels)} points but --points has {points}; use files of one run")
    if len(np.unique(labels[labels >= 0])) != labels.max(initial=-1) + 1:
        raise DataError(f"{option}: {path} skips a cluster number; clusters must be 0, 1, 2, …")
    try:
        parameters = json.loads(str(fields["parameters"]))
        iteration, seed = int(fields["iteration"]), int(fields["seed"])
    except (ValueError, TypeError):
        raise DataError(f"{option}: {path} has broken parameters; make it again with qonduit-cluster") from None
    return Partition(labels.astype(np.int32), str(fields["method"]), parameters, iteration, seed)


def read_npz(path: Path, option: str, keys: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """The named arrays of an npz file, or one sentence that says what is wrong with it."""
    try:
        with np.load(existing(path, option), allow_pickle=False) as archive:
            return {key: archive[key] for key in keys}
    except KeyError as missing:
        raise DataError(f"{option}: {path} has no {missing}; it must come from a Qonduit step") from None
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
        raise DataError(f"{option}: {path} is not a whole npz file; make it again") from None
