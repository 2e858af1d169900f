"""One module per kind of QPU behind one interface (`device.Device`); nothing here knows of StreamFlow.

`registry` finds the kinds, `settings` reads which one a step shall use, `execute` runs a request on it and
`answer` chooses the solution among what came back.
"""
