"""One module per console command; each parses its options, calls the code that does the work, writes its outputs."""
