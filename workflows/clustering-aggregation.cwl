#!/usr/bin/env -S cwltool --enable-ext
cwlVersion: v1.2
class: Workflow
$namespaces: {cwltool: "http://commonwl.org/cwltool#"}
label: Clustering aggregation
doc: |
  Several methods cluster the same points, a QUBO selects the best of all their clusters that do not overlap, and the
  mean silhouette scores the outcome. Each iteration draws other parameters; the loop ends when a score is strictly
  greater than the threshold, or at the limit. The best iteration is the result, not the last.

  The quantum step is /loop/iteration/solve. No step needs JavaScript.

requirements:
  SubworkflowFeatureRequirement: {}
  ScatterFeatureRequirement: {}
  # Holds for every step: small enough that siblings run side by side, one a core.
  ResourceRequirement: {coresMin: 1, ramMin: 256, tmpdirMin: 16, outdirMin: 64}

inputs:
  points:
    type: File?
    doc: The points to cluster, one row each, in a .csv or .npy file. Without it, the papers' 80,000 points are made.
  methods:
    type: string[]
    default: [kmeans, dbscan, hierarchical]
    doc: The clustering methods whose clusters are aggregated, each named once.
  threshold:
    type: double
    default: 0.8
    doc: A score strictly greater than this, in [-1, 1], ends the loop.
  max_iterations:
    type: int
    default: 10
    doc: The loop ends after so many iterations; at least 1.
  width:
    type: int
    default: 1
    doc: How many iterations run at once. The result is the same for every width; at least 1.
  seed:
    type: int
    default: 0
    doc: The parameters of every method in every iteration, and the solver's samples, follow from it.
  preset:
    type: string
    default: fitted
    doc: |
      Where the methods' parameters are drawn from: "fitted" to the data's own scale, or the ranges of the "papers".
  weights:
    type: string
    default: silhouette
    doc: What a cluster is worth, the sum of its points' silhouettes ("silhouette") or its number of points ("size").
  penalty:
    type: string
    default: auto
    doc: |
      What an overlap costs in the QUBO: "auto" (just above what is needed), "n" (the papers' number of clusters, in
      units of the weight of all points), or a number.
  shots:
    type: int
    default: 100
    doc: How many samples the solver takes in each iteration.

outputs:
  labels:
    type: File
    outputSource: select/labels
    doc: "labels.csv: the best clustering, one integer a line, one line a point in input order."
  best_score:
    type: double
    outputSource: select/best_score
    doc: The best iteration's mean silhouette.
  best_iteration:
    type: int
    outputSource: select/best_iteration
    doc: The best iteration, from 0; the earliest of equals.
  scores:
    type: double[]
    outputSource: select/scores
    doc: The score of every iteration that counts, in order.
  summary:
    type: File
    outputSource: select/summary
    doc: "summary.json: the outcome in short."
  history:
    type: File
    outputSource: select/history
    doc: "history.json: parameters, times and memory of every step of every iteration that counts."
  problem:
    type: File
    outputSource: select/problem
    doc: "problem.json: the best iteration's QUBO."
  samples:
    type: File
    outputSource: select/samples
    doc: "samples.json: the best iteration's solution and all its samples."
  report:
    type: File
    outputSource: render/report
    doc: "report.html: the run as one page."
  pictures:
    type: File[]
    outputSource: render/pictures
    doc: The report's pictures.
  best:
    type: File
    outputSource: select/best
    doc: "best.npz: the best clustering, with the points that were in no selected cluster."
  partitions:
    type: File[]
    outputSource: select/partitions
    doc: "labels-N.npz: what each method found in the best iteration."
  matrix:
    type: File
    outputSource: convert/matrix
    doc: "points.npy: the points as the steps read them."
  settings:
    type: File
    outputSource: start/settings
    # StreamFlow ends a run at once only if the step that failed gives an output of the workflow.
    doc: "settings.json: the loop's settings as they were checked."

steps:
  start:
    run: tools/loop-start.cwl
    in:
      methods: methods
      threshold: threshold
      max_iterations: max_iterations
      width: width
      preset: preset
      weights: weights
      penalty: penalty
      seed: seed
      shots: shots
    out: [indices, settings]
  convert:
    run: tools/points.cwl
    in: {file: points, after: start/indices}
    out: [matrix]
  tree:
    run: tools/tree.cwl
    in: {points: convert/matrix}
    out: [tree]
  loop:
    run: pass.cwl
    in:
      go: {default: true}
      indices: start/indices
      points: convert/matrix
      tree: tree/tree
      methods: methods
      threshold: threshold
      max_iterations: max_iterations
      width: width
      seed: seed
      preset: preset
      weights: weights
      penalty: penalty
      shots: shots
    out: [go, next_indices, kept]
    requirements:
      cwltool:Loop:
        loopWhen: $(inputs.go)
        loop: {go: go, indices: next_indices}
        outputMethod: all
  select:
    run: tools/loop-select.cwl
    in: {passes: loop/kept, threshold: threshold, max_iterations: max_iterations, width: width}
    out: [best_score, best_iteration, scores, labels, best, summary, history, problem, samples, partitions]
  render:
    run: tools/report.cwl
    in:
      points: convert/matrix
      labels: select/labels
      best: select/best
      summary: select/summary
      history: select/history
      problem: select/problem
      samples: select/samples
      partitions: select/partitions
    out: [report, pictures]
