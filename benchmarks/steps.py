"""Speed and memory of the steps beside the libraries that people would otherwise use: `make bench`.

Times are CPU seconds, the best of `REPEATS`, ours and the peer's in turn in one process; memory is a process's peak.
Every row, met or missed, goes to benchmarks/results/steps.json. Run it alone: the machine's other work shows in it.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rows import Row, below, faster, run

HERE = Path(__file__).parent
REPEATS = 5
EPS = (1.6, 4.47)
CLUSTERS = 9


def turns(*works: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """The best CPU seconds of each, taken in turn so that a busy moment hits all alike."""
    best = [float("inf")] * len(works)
    for work in works:
        work()  # compiles, loads, fills caches
    for _ in range(repeats):
        for i, work in enumerate(works):
            time.sleep(0.2)  # OpenMP's threads spin for a while after their work: that time is not the next one's
            start = time.process_time()
            work()
            best[i] = min(best[i], time.process_time() - start)
    return best


def papers_points(n: int = 80_000) -> Any:
    from qonduit_steps.blobs import PAPERS, blobs

    return blobs(**PAPERS | {"points": n})


def own_process(code: str) -> dict[str, float]:
    """Runs code that fills a dict `result`, in a process of its own; adds that process's peak memory."""
    script = (
        "import json, time\nfrom qonduit_steps.command import peak_mb\nresult = {}\n"
        + code
        + "\nresult['peak_mb'] = peak_mb()\nprint(json.dumps(result))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=HERE)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def silhouette() -> list[Row]:
    from sklearn.metrics import silhouette_score

    from qonduit_steps.kernels.kmeans import kmeans
    from qonduit_steps.selection import mean_silhouette

    points = papers_points()
    labels = kmeans(points, points[:CLUSTERS])[0]
    ours, theirs = turns(lambda: mean_silhouette(points, labels), lambda: silhouette_score(points, labels))
    setup = (
        "from steps import papers_points\nfrom qonduit_steps.kernels.kmeans import kmeans\npoints = papers_points()\n"
        f"labels = kmeans(points, points[:{CLUSTERS}])[0]\n"
    )
    mine = own_process(setup + "from qonduit_steps.selection import mean_silhouette\nmean_silhouette(points, labels)")
    peer = own_process(setup + "from sklearn.metrics import silhouette_score\nsilhouette_score(points, labels)")
    name = "scikit-learn silhouette_score"
    return [
        faster(f"exact silhouette, 80,000 points, {CLUSTERS} clusters", ours, name, theirs, 60),
        faster("exact silhouette, peak memory of the process", mine["peak_mb"], name, peer["peak_mb"], 4, "MB"),
    ]


def dbscan() -> list[Row]:
    import numpy as np
    from sklearn.cluster import DBSCAN

    from qonduit_steps.kernels.dbscan import dbscan as ours_dbscan

    points = papers_points()
    rows = []
    for eps in EPS:
        assert np.array_equal(ours_dbscan(points, eps, 10)[0], DBSCAN(eps=eps, min_samples=10).fit(points).labels_)
        peer = DBSCAN(eps=eps, min_samples=10)
        ours, theirs = turns(partial(ours_dbscan, points, eps, 10), partial(peer.fit, points))
        rows.append(faster(f"DBSCAN, eps {eps}, labels equal", ours, "scikit-learn DBSCAN", theirs, 200))
    times = {}
    for n in (80_000, 160_000):
        random = np.random.default_rng(0)
        angle = random.uniform(0, np.pi / 2, n // 2)
        near, arc = 1e-6 * random.normal(size=(n // 2, 2)), 1.0001 * np.stack((np.cos(angle), np.sin(angle)), 1)
        adversary = np.concatenate((near, arc))
        assert ours_dbscan(adversary, 1.0, 10)[0].max() == 1
        (times[n],) = turns(partial(ours_dbscan, adversary, 1.0, 10))
    growth = times[160_000] / times[80_000]
    rows.append(
        Row(
            "DBSCAN, two dense groups just out of reach: CPU s of 160,000 over 80,000 points",
            "ratio",
            growth,
            "n log n",
            2 * math.log(160_000) / math.log(80_000),
            None,
            "< 3 (quadratic: 4)",
            growth < 3,
        )
    )
    return rows


def single_linkage() -> list[Row]:
    import fastcluster

    from qonduit_steps.kernels.linkage import hierarchical

    points = papers_points()
    ours, theirs = turns(
        lambda: hierarchical(points, 8, "single"), lambda: fastcluster.linkage_vector(points, "single")
    )
    memory = own_process(
        "from steps import papers_points\nfrom qonduit_steps.kernels.linkage import hierarchical\n"
        "hierarchical(papers_points(), 8, 'single')"
    )
    return [
        faster("single linkage, 80,000 points", ours, "fastcluster.linkage_vector", theirs, 20),
        below("single linkage, peak memory of the process", "MB", memory["peak_mb"], 400),
    ]


def kmeans() -> list[Row]:
    import numpy as np
    from sklearn.cluster import KMeans

    from qonduit_steps.kernels.kmeans import kmeans as ours_kmeans

    points = papers_points()
    starts = [points[np.random.default_rng(k).integers(0, len(points), k)] for k in range(4, 11)]

    def theirs_all() -> None:
        for start in starts:
            KMeans(n_clusters=len(start), init=start, n_init=1, algorithm="lloyd").fit(points)

    ours, theirs = turns(lambda: [ours_kmeans(points, start) for start in starts], theirs_all)
    return [faster("k-means, k 4 to 10 from the same random starts", ours, "scikit-learn KMeans, lloyd", theirs, 8)]


ITERATION = """
import os
from steps import papers_points
points = papers_points({n})
import numpy as np
from qonduit.devices import annealer, exact  # as the commands do before they start to work
import dimod, scipy.spatial
from iteration import whole_iteration
whole_iteration(points[:500])  # loads what is compiled
start = time.perf_counter()
result['score'] = whole_iteration(points)
result['seconds'] = time.perf_counter() - start
"""


def iterations() -> list[Row]:
    rows = []
    for n, seconds, megabytes, repeats in ((80_000, 2.0, 350.0, REPEATS), (1_000_000, 25.0, 1536.0, 2)):
        found = [own_process(ITERATION.format(n=n)) for _ in range(repeats)]
        best = min(run["seconds"] for run in found)
        rows.append(below(f"one whole iteration, {n:,} points, exact solve, in one process", "wall s", best, seconds))
        peak = max(run["peak_mb"] for run in found)
        rows.append(below(f"one whole iteration, {n:,} points, peak memory", "MB", peak, megabytes))
    return rows


def start_up() -> list[Row]:
    """Each command on 40 points, from process start to exit: its start and next to no work."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cluster = "qonduit-cluster --points points.npy --tree tree.npz --preset papers --method"
        inputs = "--points points.npy --labels kmeans.npz dbscan.npz hierarchical.npz"
        commands = {
            "points": "qonduit-points blobs --points 40 --out points.npy",
            "tree": "qonduit-tree --points points.npy --out tree.npz",
            "cluster, kmeans": f"{cluster} kmeans --out kmeans.npz",
            "cluster, dbscan": f"{cluster} dbscan --out dbscan.npz",
            "cluster, hierarchical": f"{cluster} hierarchical --out hierarchical.npz",
            "aggregate": f"qonduit-aggregate {inputs} --out problem.json",
            "solve": "qonduit-solve --problem problem.json --out samples.json",
            "score": f"qonduit-score {inputs} --samples samples.json --out score.json --labels-out best.npz",
            "loop": "qonduit-loop start --methods kmeans --settings settings.json --out next.json",
        }
        rows = []
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        for title, command in commands.items():
            best = float("inf")
            for _ in range(REPEATS):
                start = time.perf_counter()
                subprocess.run(command.split(), cwd=folder, env=environment, check=True, capture_output=True)
                best = min(best, time.perf_counter() - start)
            rows.append(below(f"start of qonduit-{title}: the whole command on 40 points", "wall s", best, 0.8))
        return rows


def loop() -> list[Row]:
    """The default run under StreamFlow against the sum of its critical path's steps."""
    from critical_path import critical_path_s

    root = HERE.parent
    best: tuple[float, float, float] | None = None
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as name:
            command = ["streamflow", "run", str(root / "streamflow.yml"), "--outdir", f"{name}/out", "--name", "bench"]
            start = time.perf_counter()
            done = subprocess.run(
                command, env={**environment, "TMPDIR": name}, check=True, capture_output=True, text=True, cwd=root
            )
            wall = time.perf_counter() - start
            path = critical_path_s(done.stderr, json.loads(Path(name, "out", "history.json").read_text()))
            limit = 3.5 + 1.25 * path
            if best is None or wall / limit < best[0] / best[1]:
                best = (wall, limit, path)
    assert best is not None
    wall, limit, path = best
    return [
        Row(
            f"streamflow run of the whole loop; its critical path's steps take {path:.2f} s",
            "wall s",
            wall,
            "3.5 s + 1.25 × critical path",
            limit,
            limit / wall,
            f"< {limit:.2f}",
            wall <= limit,
        )
    ]


PARTS = {part.__name__: part for part in (silhouette, dbscan, single_linkage, kmeans, iterations, start_up, loop)}


if __name__ == "__main__":
    run("steps", __doc__, PARTS)
