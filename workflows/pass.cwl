cwlVersion: v1.2
class: Workflow
label: One pass of the loop
doc: Runs the iterations of a pass side by side, then judges which of them count and whether the loop goes on.

requirements:
  SubworkflowFeatureRequirement: {}
  ScatterFeatureRequirement: {}

inputs:
  indices: int[]
  points: File
  tree: File
  methods: string[]
  threshold: double
  max_iterations: int
  width: int
  seed: int
  preset: string
  weights: string
  penalty: string
  shots: int

outputs:
  go: {type: boolean, outputSource: gate/go}
  next_indices: {type: "int[]", outputSource: gate/indices}
  kept: {type: Directory, outputSource: gate/kept}

steps:
  iteration:
    run: iteration.cwl
    scatter: index
    in:
      index: indices
      points: points
      tree: tree
      methods: methods
      seed: seed
      preset: preset
      weights: weights
      penalty: penalty
      shots: shots
    out: [kept]
  gate:
    run: tools/loop-gate.cwl
    in: {iterations: iteration/kept, threshold: threshold, max_iterations: max_iterations, width: width}
    out: [go, indices, kept]
