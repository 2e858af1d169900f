cwlVersion: v1.2
class: CommandLineTool
label: Solve
doc: The quantum step. Its device is the one that QONDUIT_DEVICE names at the step's location, or the local annealer.
baseCommand: [qonduit-solve]
arguments: [--out, samples.json, --record, solve.json]
inputs:
  problem: {type: File, inputBinding: {prefix: --problem}}
  shots: {type: int, inputBinding: {prefix: --shots}}
  seed: {type: int, inputBinding: {prefix: --seed}}
outputs:
  samples: {type: File, outputBinding: {glob: samples.json}}
  record: {type: File, outputBinding: {glob: solve.json}}
