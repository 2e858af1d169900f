"""The first steps of Pulser's documentation on a machine of Pasqal's cloud: connect, build a sequence, run it, count.

The documentation's arguments of the connection are read from the environment: PASQAL_URL, PASQAL_USERNAME,
PASQAL_PASSWORD and PASQAL_PROJECT_ID.
"""

import os

from pasqal_cloud import PasqalCloudConnection
from pasqal_cloud.endpoints import Endpoints, TokenProviderConf
from pulser import InterpolatedWaveform, Pulse, QPUBackend, Register, Sequence

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
device = connection.fetch_available_devices()["FRESNEL"]
register = Register.from_coordinates([(0, 0), (6, 0), (12, 0)], prefix="q").with_automatic_layout(device)
sequence = Sequence(register, device)
sequence.declare_channel("rydberg", "rydberg_global")
sequence.add(
    Pulse(InterpolatedWaveform(3000, [1e-9, 6, 1e-9]), InterpolatedWaveform(3000, [-12, 0, 12]), 0),
    "rydberg",
)
results = QPUBackend(sequence, connection=connection).run(job_params=[{"runs": 200}], wait=True)
print(results.get_batch_status().name)
print(sum(results[0].final_bitstrings.values()))
print(results[0].final_bitstrings.most_common(1)[0][0])
