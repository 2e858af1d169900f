"""Qiskit on IQM as its user guide begins: a Bell pair; address and token are in the environment."""

# Written as a user would, and IQM's packages are not all typed.
# mypy: ignore-errors

from iqm.qiskit_iqm import IQMProvider
from qiskit import QuantumCircuit, transpile

provider = IQMProvider()
backend = provider.get_backend()
print("machine:", backend.name, "with", backend.num_qubits, "qubits")

circuit = QuantumCircuit(2)
circuit.h(0)
circuit.cx(0, 1)
circuit.measure_all()

transpiled = transpile(circuit, backend)
job = backend.run(transpiled, shots=1000)
print("job:", job.job_id(), job.status())
result = job.result()
print("counts:", result.get_counts())

again = backend.retrieve_job(job.job_id())
print("again:", again.result().get_counts())
