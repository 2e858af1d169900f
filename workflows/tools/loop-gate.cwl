cwlVersion: v1.2
class: CommandLineTool
label: Gate of the loop
doc: Judges a pass, keeps the best of its iterations that count, and names the iterations of the next pass.
baseCommand: [qonduit-loop, gate]
arguments: [--keep, pass, --out, cwl.output.json]
inputs:
  iterations: {type: "Directory[]", inputBinding: {prefix: --iterations}}
  threshold: {type: double, inputBinding: {prefix: --threshold=, separate: false}}
  max_iterations: {type: int, inputBinding: {prefix: --max-iterations=, separate: false}}
  width: {type: int, inputBinding: {prefix: --width=, separate: false}}
outputs:
  go: boolean
  indices: int[]
  kept: Directory
