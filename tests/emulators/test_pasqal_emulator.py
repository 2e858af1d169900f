"""The emulated Pasqal cloud as the vendor's own client meets it: first steps, open batches, filters, a restart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from qonduit.emulators.running import Server, running

if TYPE_CHECKING:
    from pasqal_cloud.pasqal_cloud_client import PasqalCloudClient

QUICKSTART = Path(__file__).parent / "quickstart"


@pytest.fixture(scope="module")
def emulated() -> Iterator[Server]:
    with running("pasqal", seed=1, noise=False) as server:
        yield server


@pytest.fixture
def server(emulated: Server) -> Server:
    emulated.clear()
    emulated.forget()
    return emulated


def client(server: Server) -> PasqalCloudClient:
    """The vendor's client, unmodified; it may warn that a newer one exists."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pasqal_cloud.endpoints import Endpoints, TokenProviderConf
        from pasqal_cloud.pasqal_cloud_client import PasqalCloudClient

        url, options = server.url, server.settings().options
        return PasqalCloudClient(
            username=options["username"],
            password=server.token_file.read_text().strip(),
            project_id=options["project_id"],
            endpoints=Endpoints(core=f"{url}/core-fast", account=f"{url}/account"),
            auth_config=TokenProviderConf(f"{url}/oauth/token", "any", "any", "any", "password"),
        )


def sequence(server: Server, atoms: int = 2, apart: float = 12.0) -> str:
    from pulser import Pulse, Register, Sequence
    from pulser.json.abstract_repr.deserializer import deserialize_device

    device: Any = deserialize_device(client(server).get_device_specs_dict()["FRESNEL"])
    register = Register.from_coordinates([(apart * (v % 6), apart * (v // 6)) for v in range(atoms)], prefix="q")
    made: Any = Sequence(register.with_automatic_layout(device), device)
    made.declare_channel("rydberg", "rydberg_global")
    made.add(Pulse.ConstantPulse(248, 6.0, 0.0, 0.0), "rydberg")
    made.measure("ground-rydberg")
    return str(made.to_abstract_repr())


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ("pasqal_qpu.py", ["DONE", "200", "101"]),
        ("pasqal_emulator.py", ["{'11': 100}", "{'00': 100}"]),
    ],
)
def test_the_documented_first_steps_run_unmodified(server: Server, script: str, lines: list[str]) -> None:
    options = server.settings().options
    environment = {
        **os.environ,
        "PASQAL_URL": server.url,
        "PASQAL_USERNAME": options["username"],
        "PASQAL_PASSWORD": server.token_file.read_text().strip(),
        "PASQAL_PROJECT_ID": options["project_id"],
    }
    ran = subprocess.run(
        [sys.executable, str(QUICKSTART / script)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == lines
    assert not any("not implemented" in line for line in server.calls())


def test_an_open_batch_takes_more_jobs_until_it_is_closed(server: Server) -> None:
    cloud = client(server)
    batch = cloud.create_batch(sequence(server), jobs=[{"runs": 10}], open=True)
    cloud.add_jobs(batch.id, jobs=[{"runs": 20}])
    closed = cloud.close_batch(batch.id)
    assert (closed.open, closed.jobs_count) == (False, 2)
    with pytest.raises(BaseException, match="closed"):
        cloud.add_jobs(batch.id, jobs=[{"runs": 30}])
    assert [job.runs for job in cloud.get_batch(batch.id).ordered_jobs] == [10, 20]
    assert len(server.jobs()) == 2


def test_batches_are_found_by_tag_and_tags_can_be_changed(server: Server) -> None:
    from pasqal_cloud.utils.filters import BatchFilters

    cloud = client(server)
    text = sequence(server)
    first = cloud.create_batch(text, jobs=[{"runs": 10}], tags=["one"])
    cloud.create_batch(text, jobs=[{"runs": 10}], tags=["two"])
    assert [batch.id for batch in cloud.get_batches(filters=BatchFilters(tag="one")).results] == [first.id]
    cloud.set_batch_tags(first.id, ["three"])
    assert cloud.get_batches(filters=BatchFilters(tag="one")).total == 0
    assert [batch.id for batch in cloud.get_batches(filters=BatchFilters(tag="three")).results] == [first.id]


def test_jobs_and_batches_can_be_cancelled_by_the_vendors_client(server: Server) -> None:
    cloud = client(server)
    server.inject({"fault": "stays-queued", "times": 3})
    text = sequence(server)
    batches = [cloud.create_batch(text, jobs=[{"runs": 10}]) for _ in range(3)]
    assert cloud.cancel_batch(batches[0].id).status == "CANCELED"
    assert cloud.cancel_job(batches[1].ordered_jobs[0].id).status == "CANCELED"
    many = cloud.cancel_batches([batches[2].id, str(uuid.uuid4())])
    assert ([batch.id for batch in many.batches], len(many.errors)) == ([batches[2].id], 1)


def test_jobs_tags_and_the_calibration_are_kept_over_a_restart() -> None:
    with running("pasqal", seed=1) as server:
        server.inject({"fault": "calibration-changes", "on": "discover"})
        text = sequence(server)
        batch = client(server).create_batch(text, jobs=[{"runs": 10}], tags=["kept"], open=True)
        client(server).set_batch_tags(batch.id, ["changed"])
        specs = client(server).get_device_specs_dict()
        server.restart()
        again = client(server).get_batch(batch.id)
        assert (again.tags, again.open, len(again.ordered_jobs)) == (["changed"], True, 1)
        assert client(server).get_device_specs_dict() == specs


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"project_id": "another"}, 403, "not yours"),
        ({"jobs": []}, 400, "needs a job"),
        ({"jobs": [{"runs": 0}]}, 400, "runs"),
        ({"jobs": "many"}, 400, "needs a job"),
        ({"sequence_builder": "{}"}, 400, "not valid"),
        ({"sequence_builder": None}, 400, "sequence"),
        ({"device_type": "EMU_NONE"}, 400, "EMU_FREE"),
        ({"device_type": "EMU_FREE", "backend_configuration": "{"}, 400, "configuration"),
    ],
)
def test_a_wrong_batch_is_refused_in_the_vendors_shape(
    server: Server, change: dict[str, Any], status: int, said: str
) -> None:
    batch = {
        "sequence_builder": sequence(server),
        "jobs": [{"runs": 5}],
        "project_id": server.settings().options["project_id"],
        **change,
    }
    token = server.token_file.read_text().strip()
    answer = requests.post(
        f"{server.url}/core-fast/api/v1/batches", json=batch, headers={"Authorization": f"Bearer {token}"}, timeout=30
    )
    assert answer.status_code == status
    assert answer.json()["status"] == "fail"
    assert said in answer.json()["data"]["description"]
    assert server.jobs() == []


def test_more_atoms_than_can_be_simulated_are_refused_with_both_numbers(server: Server) -> None:
    with pytest.raises(BaseException, match="15 atoms are more than the 14"):
        client(server).create_batch(sequence(server, atoms=15), jobs=[{"runs": 5}])


def test_what_is_not_implemented_says_so_and_is_logged(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.token_file.read_text().strip()}"}
    for path in ("/core-fast/api/v1/workloads", "/core-fast/api/v1/batches?start_date=2026-01-01"):
        answer = requests.get(server.url + path, headers=headers, timeout=30)
        assert answer.status_code == 501
        assert "does not implement" in answer.json()["message"]
    assert any("not implemented" in line for line in server.calls())


def test_results_are_read_by_their_link_only(server: Server) -> None:
    cloud = client(server)
    batch = cloud.create_batch(sequence(server), jobs=[{"runs": 10}], wait=True)
    job = batch.ordered_jobs[0]
    assert sum((job.result or {}).values()) == 10
    assert requests.get(f"{server.url}/results/{job.id}", timeout=30).status_code == 401
    assert not any("signature" in line for line in server.calls())
    assert json.dumps(job.full_result)
