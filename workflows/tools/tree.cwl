cwlVersion: v1.2
class: CommandLineTool
label: Spanning tree
doc: The spanning tree of single linkage, which every iteration cuts at another place.
baseCommand: [qonduit-tree]
arguments: [--out, tree.npz]
inputs:
  points: {type: File, inputBinding: {prefix: --points}}
outputs:
  tree: {type: File, outputBinding: {glob: tree.npz}}
