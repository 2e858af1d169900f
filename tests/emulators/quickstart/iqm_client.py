"""IQM's own client as its user guide begins: a circuit in native gates; address and token are in the environment."""

# Written as a user would, and IQM's packages are not all typed.
# mypy: ignore-errors

from math import pi

from iqm.iqm_client import IQMClient
from iqm.pulse import Circuit, CircuitOperation

client = IQMClient.from_url()
architecture = client.get_dynamic_quantum_architecture()
first, second = architecture.gates["cz"].loci[0]
turn = {"angle": pi / 2, "phase": pi / 2}

circuit = Circuit(
    name="Bell pair",
    instructions=(
        CircuitOperation(name="prx", locus=(first,), args=turn),
        CircuitOperation(name="prx", locus=(second,), args=turn),
        CircuitOperation(name="cz", locus=(first, second), args={}),
        CircuitOperation(name="prx", locus=(second,), args={"angle": -pi / 2, "phase": pi / 2}),
        CircuitOperation(name="measure", locus=(first, second), args={"key": "M"}),
    ),
)

job = client.submit_circuits([circuit], shots=1000)
print("job:", job.job_id)
job.wait_for_completion()
print("status:", job.status)
print("counts:", client.get_job_measurement_counts(job.job_id)[0].counts)
print("shots:", len(job.result()[0]["M"]))

print("health:", client.get_health())
print("about:", client.get_about()["version"])
print("qubits:", client.get_static_quantum_architecture().qubits)
print("metrics:", len(client.get_quality_metric_set().observations))
print("calibration:", client.get_calibration_set().observation_set_id)
client.delete_job(client.submit_circuits([circuit], shots=10).job_id)
