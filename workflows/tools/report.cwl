cwlVersion: v1.2
class: CommandLineTool
label: Report
doc: The run as one page and as pictures.
requirements:
  InitialWorkDirRequirement:
    listing:
      - $(inputs.points)
      - $(inputs.labels)
      - $(inputs.best)
      - $(inputs.summary)
      - $(inputs.history)
      - $(inputs.problem)
      - $(inputs.samples)
      - $(inputs.partitions)
baseCommand: [qonduit-report]
arguments: [--run, ., --out, report.html]
inputs:
  points: File
  labels: File
  best: File
  summary: File
  history: File
  problem: File
  samples: File
  partitions: File[]
outputs:
  report: {type: File, outputBinding: {glob: report.html}}
  pictures: {type: "File[]", outputBinding: {glob: "*.png"}}
