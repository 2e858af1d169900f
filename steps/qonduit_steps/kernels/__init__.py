"""Exact, fast kernels in numba: k-means, DBSCAN, spanning trees, linkage, silhouette."""
