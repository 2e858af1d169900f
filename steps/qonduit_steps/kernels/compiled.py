"""How kernels are compiled: `@kernel` is numba's `njit`, typed, without the GIL and cached on disk.

The cache lies beside the source if that can be written, else in a private folder of the user's real home:
the engine gives each job a HOME of its own, which would otherwise mean compiling again in each.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from qonduit.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")


def _choose_cache() -> None:
    here = Path(__file__).parent
    if "NUMBA_CACHE_DIR" in os.environ or os.access(here, os.W_OK):
        return
    user = os.getuid()
    folders = [Path(tempfile.gettempdir()) / f"qonduit-numba-{user}"]
    with contextlib.suppress(KeyError):  # a container's user may have no home
        folders.insert(0, Path(pwd.getpwuid(user).pw_dir) / ".cache" / "qonduit-numba")
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
        except OSError:
            continue
        # Compiled code is loaded from there: nobody else may own it or write to it.
        if status.st_uid == user and not status.st_mode & 0o022 and not folder.is_symlink():
            os.environ["NUMBA_CACHE_DIR"] = str(folder)
            return


_choose_cache()

import numba  # noqa: E402  (reads its environment when it is imported)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    return cast(Callable[P, R], numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def fast_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`, but sums may be reordered so that they use vector units; for finite numbers only."""
    fastmath = {"reassoc", "contract", "nsz", "arcp"}
    return cast(Callable[P, R], numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=fastmath)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small function that is compiled into its callers."""
    return cast(Callable[P, R], numba.njit(inline="always", error_model="numpy")(function))


def threads() -> int:
    """QONDUIT_THREADS, else the CPUs that this process may use."""
    given = os.environ.get("QONDUIT_THREADS", "")
    if not given:
        return len(os.sched_getaffinity(0))
    if not given.isdecimal() or int(given) < 1:
        raise UsageError(f"QONDUIT_THREADS: '{given}' is not a whole number from 1; correct or unset it")
    return int(given)


def in_threads(work: Callable[[int], R], jobs: Iterable[int]) -> Iterator[R]:
    """Runs `work(job)` for all jobs on all cores; what a job computes never depends on the number of threads.

    Results come in order, as they are ready, so that the caller need not hold them all.
    """
    with ThreadPoolExecutor(threads()) as pool:
        yield from pool.map(work, jobs)


threads()  # a wrong QONDUIT_THREADS shows at once, not only where there is much to do
