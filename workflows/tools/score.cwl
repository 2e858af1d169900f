cwlVersion: v1.2
class: CommandLineTool
label: Score
doc: The clustering that the solution selects, its mean silhouette, and a folder with everything of this iteration.
baseCommand: [qonduit-score]
arguments:
  - {prefix: --out, valueFrom: score.json}
  - {prefix: --labels-out, valueFrom: best.npz}
  - {prefix: --record, valueFrom: record.json}
  - {prefix: --keep, valueFrom: iteration-$(inputs.iteration)}
inputs:
  points: {type: File, inputBinding: {prefix: --points}}
  labels: {type: "File[]", inputBinding: {prefix: --labels}}
  problem: {type: File, inputBinding: {prefix: --problem}}
  samples: {type: File, inputBinding: {prefix: --samples}}
  earlier: {type: "File[]", inputBinding: {prefix: --earlier}}
  iteration: {type: int, doc: Names the folder.}
outputs:
  kept: {type: Directory, outputBinding: {glob: iteration-$(inputs.iteration)}}
