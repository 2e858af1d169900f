"""What all tests share: reproducible property tests without deadlines, since a kernel's first call compiles it."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "qonduit", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("qonduit")
