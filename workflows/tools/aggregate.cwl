cwlVersion: v1.2
class: CommandLineTool
label: Aggregate
doc: The overlap graph of all clusters, and the QUBO that selects the best of them that do not overlap.
baseCommand: [qonduit-aggregate]
arguments: [--out, problem.json, --record, aggregate.json]
inputs:
  points: {type: File, inputBinding: {prefix: --points}}
  labels: {type: "File[]", inputBinding: {prefix: --labels}}
  weights: {type: string, inputBinding: {prefix: --weights}}
  penalty: {type: string, inputBinding: {prefix: --penalty}}
outputs:
  problem: {type: File, outputBinding: {glob: problem.json}}
  record: {type: File, outputBinding: {glob: aggregate.json}}
