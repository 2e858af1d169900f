"""Servers that speak the vendors' REST APIs and really simulate the device, with scripted faults.

`serve` runs one (`qonduit emulate`), `running` starts one beside a program or a test; `iqm`, `pasqal` and `dwave`
are the vendors, on the frame of `emulator`, `store`, `faults` and `latency`.
"""
