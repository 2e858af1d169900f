"""What all tests share: the commands of this environment on the PATH, a ledger of their own, and reproducible
property tests.

Property tests have no deadlines, since a kernel's first call compiles it.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))

# No test may find, or leave, an entry in the ledger of whoever runs it.
_ledger = tempfile.mkdtemp(prefix="qonduit-ledger-")
atexit.register(shutil.rmtree, _ledger, ignore_errors=True)
os.environ["QONDUIT_LEDGER"] = str(Path(_ledger) / "ledger.db")
for _name in ("QONDUIT_DEVICE", "QONDUIT_RUN", "QONDUIT_SPOOL"):
    os.environ.pop(_name, None)

settings.register_profile(
    "qonduit", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("qonduit")
