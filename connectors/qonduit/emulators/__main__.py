"""`python -m qonduit.emulators`: what `running` starts."""

from qonduit.emulators.command import main

main()
