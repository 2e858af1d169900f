"""What all tests share: the commands of this environment on the PATH, and reproducible property tests.

Property tests have no deadlines, since a kernel's first call compiles it.
"""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))

settings.register_profile(
    "qonduit", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("qonduit")
