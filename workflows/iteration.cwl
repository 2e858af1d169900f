cwlVersion: v1.2
class: Workflow
label: One iteration
doc: Clusters the points by every method, each a job of its own, then aggregates, solves and scores.

requirements:
  ScatterFeatureRequirement: {}
  MultipleInputFeatureRequirement: {}

inputs:
  index: int
  points: File
  tree: File
  methods: string[]
  seed: int
  preset: string
  weights: string
  penalty: string
  shots: int

outputs:
  kept: {type: Directory, outputSource: score/kept}

steps:
  cluster:
    run: tools/cluster.cwl
    scatter: method
    in: {method: methods, points: points, tree: tree, iteration: index, seed: seed, preset: preset}
    out: [labels, record]
  aggregate:
    run: tools/aggregate.cwl
    in: {points: points, labels: cluster/labels, weights: weights, penalty: penalty}
    out: [problem, record]
  solve:
    run: tools/solve.cwl
    in: {problem: aggregate/problem, shots: shots, seed: seed}
    out: [samples, record]
  score:
    run: tools/score.cwl
    in:
      points: points
      labels: cluster/labels
      problem: aggregate/problem
      samples: solve/samples
      earlier: {source: [cluster/record, aggregate/record, solve/record], linkMerge: merge_flattened}
      iteration: index
    out: [kept]
