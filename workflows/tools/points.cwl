cwlVersion: v1.2
class: CommandLineTool
label: Points
doc: Reads a .csv or .npy file once and checks it, or makes the papers' points, so that all later steps read one format.
baseCommand: [qonduit-points, convert]
arguments: [--out, points.npy]
inputs:
  file:
    type: File?
    inputBinding: {position: -1}
  after:
    type: Any?
    doc: Not read. The output of a step that has to succeed first, such as a check of the settings.
outputs:
  matrix: {type: File, outputBinding: {glob: points.npy}}
