# mypy: disable-error-code=no-untyped-call
"""The first steps of Ocean's documentation on a hybrid solver: a problem that no working graph has to hold.

Needs DWAVE_API_ENDPOINT and DWAVE_API_TOKEN, nothing else.
"""

import dimod
from dwave.system import LeapHybridSampler

bqm = dimod.generators.ran_r(1, 300, seed=1)
sampler = LeapHybridSampler()
answer = sampler.sample(bqm, time_limit=5, label="first steps")
print(len(answer.first.sample))
print(answer.first.energy)
print(answer.info["charge_time"])
