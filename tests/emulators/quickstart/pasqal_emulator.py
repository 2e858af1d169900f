"""The first steps of Pasqal's documentation on an emulator of its cloud, with two jobs of one parametrised sequence.

The documentation's arguments of the connection are read from the environment: PASQAL_URL, PASQAL_USERNAME,
PASQAL_PASSWORD and PASQAL_PROJECT_ID.
"""

import os
from typing import Any

import numpy as np
from pasqal_cloud import PasqalCloudConnection, RemoteEmuFreeBackend
from pasqal_cloud.endpoints import Endpoints, TokenProviderConf
from pulser import Pulse, Register, Sequence
from pulser.backend import BitStrings, EmulationConfig
from pulser.devices import MockDevice

url = os.environ["PASQAL_URL"]
connection = PasqalCloudConnection(
    username=os.environ["PASQAL_USERNAME"],
    password=os.environ["PASQAL_PASSWORD"],
    project_id=os.environ["PASQAL_PROJECT_ID"],
    endpoints=Endpoints(core=f"{url}/core-fast", account=f"{url}/account"),
    auth_config=TokenProviderConf(
        token_endpoint=f"{url}/oauth/token", public_client_id="any", audience="any", realm="any", grant_type="password"
    ),
)
sequence = Sequence(Register({"q0": (0, 0), "q1": (30, 0)}), MockDevice)
sequence.declare_channel("rydberg", "rydberg_global")
duration = sequence.declare_variable("duration", dtype=int)
sequence.add(Pulse.ConstantPulse(duration, np.pi, 0, 0), "rydberg")
sequence.measure("ground-rydberg")
config: EmulationConfig[Any] = EmulationConfig(observables=[BitStrings(num_shots=100)])
backend = RemoteEmuFreeBackend(sequence, connection=connection, config=config)
results = backend.run(job_params=[{"variables": {"duration": 1000}}, {"variables": {"duration": 2000}}], wait=True)
for result in results:
    print(dict(result.final_bitstrings))
