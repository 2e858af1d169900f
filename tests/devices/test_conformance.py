"""The conformance kit on our own kinds, and that it fails on devices that are wrong, at the test that is for it."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, ClassVar

import pytest

from qonduit.devices.annealer import Annealer
from qonduit.devices.conformance import DeviceConformance
from qonduit.devices.dwave import Dwave
from qonduit.devices.exact import Exact
from qonduit.devices.gate import Gate
from qonduit.devices.iqm import Iqm
from qonduit.devices.pasqal import Pasqal
from qonduit.devices.pulser import Pulser
from qonduit.devices.schema import installed
from qonduit.devices.settings import Settings
from qonduit.emulators.running import Server

HERE = Path(__file__).parent
RIGHT = "samples_are_right_and_energies_recomputed"
COLUMNS = "samples_belong_to_their_variables"
REQUEST = "a_request_survives_a_file_and_is_the_same_when_prepared_again"
DIGEST = "a_digest_tells_requests_apart"
DECODE = "decode_needs_only_the_request_and_the_result"
NOBODY = "a_job_that_nobody_sent_is_unknown"
POLL = "poll_never_lies"
CANCEL = "a_cancelled_job_ends"
ENDED = "cancelling_an_ended_job_is_no_error_and_changes_nothing"
FIND = "a_job_is_found_by_its_key"
TOO_MANY = "too_many_variables_are_refused_before_anything_is_sent"
REWARD = "a_qubo_that_is_no_selection_is_refused_before_it_is_paid_for"
SECRET = "a_secret_is_nowhere_to_be_seen"
ACCESS = "a_wrong_token_is_an_access_error_that_does_not_show_it"
AWAY = "a_service_that_is_away_is_an_away_error_that_says_nothing_was_taken"
CAUGHT: dict[str, str | None] = {
    "TestRight": None,
    "TestCannotBeAsked": None,
    "TestEnergiesAreBelieved": RIGHT,
    "TestEverythingIsFeasible": RIGHT,
    "TestColumnsAreMixedUp": COLUMNS,
    "TestShotsAreLost": RIGHT,
    "TestSamplesAreSpins": RIGHT,
    "TestInfoIsNotPlain": RIGHT,
    "TestSeedIsIgnored": "the_same_seed_gives_the_same_samples",
    "TestSeedIsNotInTheRequest": DIGEST,
    "TestPayloadHasTuples": REQUEST,
    "TestPrepareIsRandom": REQUEST,
    "TestDecodeNeedsWhatPrepareKnew": DECODE,
    "TestDecodeNeedsTheToken": DECODE,
    "TestDecodeCallsTheVendor": DECODE,
    "TestEverythingIsDone": POLL,
    "TestUnknownIsDone": NOBODY,
    "TestJobGoesBack": POLL,
    "TestJobIsKnownOnlyWhereItWasSent": POLL,
    "TestCancelIsIgnored": CANCEL,
    "TestCancelTwiceFails": ENDED,
    "TestCancelUndoesADoneJob": ENDED,
    "TestNothingIsFound": FIND,
    "TestAnythingIsFound": FIND,
    "TestTooManyVariablesAreSent": TOO_MANY,
    "TestVendorErrorEscapes": TOO_MANY,
    "TestRewardsAreSent": REWARD,
    "TestOptionsAreNotChecked": "a_wrong_option_is_refused",
    "TestOptionIsNotExplained": "the_kind_and_its_options_are_described",
    "TestAddressIsNeededButNotListed": "what_a_device_file_must_have_is_listed",
    "TestQueueIsShorterThanNothing": "capabilities_make_sense",
    "TestOneVariableIsTooFew": RIGHT,
    "TestEmptyProblemCrashes": "an_empty_problem_is_answered_or_refused",
    "TestTokenIsInTheRequest": SECRET,
    "TestTokenIsInTheEnvironment": SECRET,
    "TestTokenIsInTheRepr": SECRET,
    "TestTokenIsInTheError": ACCESS,
    "TestWrongTokenIsNoAccessError": ACCESS,
    "TestNetworkErrorEscapes": AWAY,
    "TestRefusalMayHaveBeenAccepted": AWAY,
    "TestNextRoundIsTheSame": "a_next_round_is_another_request_for_the_same_qubo",
}


class TestAnnealer(DeviceConformance):
    device_class: ClassVar[type[Any]] = Annealer
    seeded: ClassVar[bool] = True


class TestExact(DeviceConformance):
    device_class: ClassVar[type[Any]] = Exact
    seeded: ClassVar[bool] = True
    every_shot: ClassVar[bool] = False


class TestGate(DeviceConformance):
    device_class: ClassVar[type[Any]] = Gate
    seeded: ClassVar[bool] = True


class TestGateThatLearnsItsAngles(TestGate):
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings("gate", options={"angles": "device"})


class TestPulser(DeviceConformance):
    device_class: ClassVar[type[Any]] = Pulser
    seeded: ClassVar[bool] = True


class TestIqm(DeviceConformance):
    device_class: ClassVar[type[Any]] = Iqm

    @pytest.fixture
    def settings(self, iqm_emulator: Server) -> Settings:
        return iqm_emulator.settings()


class TestPasqal(DeviceConformance):
    device_class: ClassVar[type[Any]] = Pasqal

    @pytest.fixture
    def settings(self, pasqal_emulator: Server) -> Settings:
        return pasqal_emulator.settings()


class TestDwave(DeviceConformance):
    device_class: ClassVar[type[Any]] = Dwave

    @pytest.fixture
    def settings(self, dwave_emulator: Server) -> Settings:
        return dwave_emulator.settings()


class TestDwaveHybrid(DeviceConformance):
    """Leap's hybrid solver returns one sample, whatever the shots."""

    device_class: ClassVar[type[Any]] = Dwave
    every_shot: ClassVar[bool] = False

    @pytest.fixture
    def settings(self, dwave_emulator: Server) -> Settings:
        return dwave_emulator.settings(solver_type="hybrid")


def test_the_kit_runs_on_every_kind_of_ours() -> None:
    tested = {made.device_class.kind for made in globals().values() if getattr(made, "device_class", None)}
    assert tested == set(installed("qonduit"))


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What failed of each class in broken_devices.py, with its message."""
    report = tmp_path_factory.mktemp("kit") / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    done = subprocess.run(
        [*command, f"--junit-xml={report}", str(HERE / "broken_devices.py")],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-3000:]
    found: dict[str, dict[str, str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        failed = found.setdefault(case.attrib["classname"].rpartition(".")[2], {})
        problems = [*case.findall("failure"), *case.findall("error")]
        if problems:
            failed[case.attrib["name"].removeprefix("test_")] = problems[0].attrib["message"]
    return found


def test_every_broken_device_is_listed(failures: dict[str, dict[str, str]]) -> None:
    assert set(failures) == set(CAUGHT)


@pytest.mark.parametrize("broken", CAUGHT)
def test_the_kit_catches_a_wrong_device_by_the_right_test(failures: dict[str, dict[str, str]], broken: str) -> None:
    failed, expected = failures[broken], CAUGHT[broken]
    assert expected in failed if expected else not failed, failed


def test_a_failure_of_the_kit_is_a_sentence_for_the_author_of_a_device(failures: dict[str, dict[str, str]]) -> None:
    assert "are columns mixed up?" in failures["TestColumnsAreMixedUp"][COLUMNS]
    assert "the token is in the request" in failures["TestTokenIsInTheRequest"][SECRET]
    assert "'done' but cannot be fetched" in failures["TestEverythingIsDone"][POLL]


def test_our_kinds_load_without_pytest() -> None:
    script = "import sys; from qonduit.devices.registry import kinds; [kind.load() for kind in kinds().values()]"
    script += "; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
