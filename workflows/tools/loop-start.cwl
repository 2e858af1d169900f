cwlVersion: v1.2
class: CommandLineTool
label: Start of the loop
doc: Checks the loop's settings before any work and names the first iterations.
baseCommand: [qonduit-loop, start]
arguments: [--settings, settings.json, --out, cwl.output.json]
inputs:
  methods: {type: "string[]", inputBinding: {prefix: --methods}}
  threshold: {type: double, inputBinding: {prefix: --threshold=, separate: false}}
  max_iterations: {type: int, inputBinding: {prefix: --max-iterations=, separate: false}}
  width: {type: int, inputBinding: {prefix: --width=, separate: false}}
  preset: {type: string, inputBinding: {prefix: --preset=, separate: false}}
  weights: {type: string, inputBinding: {prefix: --weights=, separate: false}}
  penalty: {type: string, inputBinding: {prefix: --penalty=, separate: false}}
  seed: {type: int, inputBinding: {prefix: --seed=, separate: false}}
  shots: {type: int, inputBinding: {prefix: --shots=, separate: false}}
outputs:
  indices: {type: "int[]", doc: The iterations of the first pass.}
  settings: {type: File, doc: The settings as they were checked.}
