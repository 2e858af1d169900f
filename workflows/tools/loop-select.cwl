cwlVersion: v1.2
class: CommandLineTool
label: Selection of the best
doc: Makes the run's results from the best iteration of all passes.
baseCommand: [qonduit-loop, select]
arguments: [--folder, ., --out, cwl.output.json]
inputs:
  passes: {type: "Directory[]", inputBinding: {prefix: --passes}}
  threshold: {type: double, inputBinding: {prefix: --threshold=, separate: false}}
  max_iterations: {type: int, inputBinding: {prefix: --max-iterations=, separate: false}}
  width: {type: int, inputBinding: {prefix: --width=, separate: false}}
outputs:
  best_score: double
  best_iteration: int
  scores: double[]
  labels: File
  best: File
  summary: File
  history: File
  problem: File
  samples: File
  partitions: File[]
