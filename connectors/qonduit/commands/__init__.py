"""The subcommands of `qonduit` that deal with devices: `devices`, `solve` and `ledger`."""
