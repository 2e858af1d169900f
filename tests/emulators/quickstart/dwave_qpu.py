# mypy: disable-error-code=no-untyped-call
"""The first steps of Ocean's documentation on a quantum annealer: an embedding composite on a D-Wave sampler.

Needs DWAVE_API_ENDPOINT and DWAVE_API_TOKEN, nothing else.
"""

from dwave.system import DWaveSampler, EmbeddingComposite

linear = {("a", "a"): -1, ("b", "b"): -1, ("c", "c"): -1}
quadratic = {("a", "b"): 2, ("b", "c"): 2}
sampler = EmbeddingComposite(DWaveSampler())
sampleset = sampler.sample_qubo({**linear, **quadratic}, num_reads=100, label="first steps")
print(sampleset.first.sample)
print(sampleset.first.energy)
print(sampleset.info["timing"]["qpu_access_time"])
