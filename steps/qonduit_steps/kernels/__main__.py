"""`python -m qonduit_steps.kernels`: compiles every kernel once, so that later runs load them from the cache."""

from __future__ import annotations

import numpy as np

from qonduit_steps.kernels import dbscan, kmeans, linkage, multipole, silhouette


def main() -> None:
    random = np.random.default_rng(0)
    for dimensions in (2, 3):
        points = random.normal(size=(300, dimensions))
        labels, _, _ = kmeans.kmeans(points, kmeans.plus_plus(points, 3, random))
        kmeans.nearest_centres(points, points[:3])
        dbscan.dbscan(points, 0.3, 5)
        linkage.hierarchical(points, 3, "single")
        linkage.hierarchical(points, 3, "ward")
        silhouette.silhouette_samples(points, labels.astype(np.int64))
    in_plane = np.ascontiguousarray(points[:, :2])
    silhouette._by_cluster(silhouette._group(in_plane, labels.astype(np.int64)))
    multipole.distance_sums(in_plane, in_plane)


if __name__ == "__main__":
    main()
