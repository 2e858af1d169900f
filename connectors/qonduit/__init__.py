"""Everything that connects Qonduit to a QPU: devices and, around them, what launches workflows."""
