cwlVersion: v1.2
class: CommandLineTool
label: Cluster
doc: Clusters the points by one method, with the parameters of this iteration.
baseCommand: [qonduit-cluster]
arguments: [--out, $(inputs.method).npz, --record, $(inputs.method).json]
inputs:
  method: {type: string, inputBinding: {prefix: --method}}
  points: {type: File, inputBinding: {prefix: --points}}
  tree: {type: File, inputBinding: {prefix: --tree}}
  iteration: {type: int, inputBinding: {prefix: --iteration}}
  seed: {type: int, inputBinding: {prefix: --seed}}
  preset: {type: string, inputBinding: {prefix: --preset}}
outputs:
  labels: {type: File, outputBinding: {glob: $(inputs.method).npz}}
  record: {type: File, outputBinding: {glob: $(inputs.method).json}}
