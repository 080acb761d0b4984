// RUN: mtplan-opt %s --mtp-insert-collectives | FileCheck %s

// Each kind of reshard becomes its collective, on local types. The layout over
// the second axis does not change.

// CHECK: module attributes {{{.*}}mtp.partitioned
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {

// CHECK-LABEL: mtp.segment @partial_to_whole
mtp.segment @partial_to_whole () attributes {layouts = []} {
  %x = mtp.parameter "x1" {layout = #mtp.layout<[["dp"], []], partial = ["tp"]>} : tensor<8x8xf32>
  // CHECK: mtp.parameter "x1" {{.*}} : tensor<4x8xf32>
  // CHECK: mtp.all_reduce %{{.*}} over "tp" cause "fc" : tensor<4x8xf32>
  %y = mtp.reshard %x from <[["dp"], []], partial = ["tp"]> to <[["dp"], []]> cause "fc" : tensor<8x8xf32>
  // CHECK-NOT: mtp.reshard
  mtp.yield {layouts = []}
}

// CHECK-LABEL: mtp.segment @whole_to_split
mtp.segment @whole_to_split () attributes {layouts = []} {
  %x = mtp.parameter "x2" {layout = #mtp.layout<[["dp"], []]>} : tensor<8x8xf32>
  // CHECK: mtp.slice %{{.*}} over "tp" dim 1 cause "fc" : (tensor<4x8xf32>) -> tensor<4x2xf32>
  %y = mtp.reshard %x from <[["dp"], []]> to <[["dp"], ["tp"]]> cause "fc" : tensor<8x8xf32>
  mtp.yield {layouts = []}
}

// CHECK-LABEL: mtp.segment @split_to_split
mtp.segment @split_to_split () attributes {layouts = []} {
  %x = mtp.parameter "x3" {layout = #mtp.layout<[["dp"], ["tp"]]>} : tensor<8x8xf32>
  // CHECK: mtp.all_to_all %{{.*}} over "tp" split 0 join 1 cause "fc" : (tensor<4x2xf32>) -> tensor<1x8xf32>
  %y = mtp.reshard %x from <[["dp"], ["tp"]]> to <[["dp", "tp"], []]> cause "fc" : tensor<8x8xf32>
  mtp.yield {layouts = []}
}

// CHECK-LABEL: mtp.segment @split_to_whole
mtp.segment @split_to_whole () attributes {layouts = []} {
  %x = mtp.parameter "x4" {layout = #mtp.layout<[["dp", "tp"], []]>} : tensor<8x8xf32>
  // CHECK: mtp.all_gather %{{.*}} over "tp" dim 0 cause "fc" : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %y = mtp.reshard %x from <[["dp", "tp"], []]> to <[["dp"], []]> cause "fc" : tensor<8x8xf32>
  mtp.yield {layouts = []}
}

// CHECK-LABEL: mtp.segment @whole_to_partial
mtp.segment @whole_to_partial () attributes {layouts = []} {
  %x = mtp.parameter "x5" {layout = #mtp.layout<[["dp"], []]>} : tensor<8x8xf32>
  // CHECK: mtp.mask %{{.*}} over "tp" cause "fc" : tensor<4x8xf32>
  %y = mtp.reshard %x from <[["dp"], []]> to <[["dp"], []], partial = ["tp"]> cause "fc" : tensor<8x8xf32>
  mtp.yield {layouts = []}
}

// CHECK-LABEL: mtp.segment @partial_to_split
mtp.segment @partial_to_split () attributes {layouts = []} {
  %x = mtp.parameter "x6" {layout = #mtp.layout<[["dp"], []], partial = ["tp"]>} : tensor<8x8xf32>
  // CHECK: mtp.reduce_scatter %{{.*}} over "tp" dim 1 cause "fc" : (tensor<4x8xf32>) -> tensor<4x2xf32>
  %y = mtp.reshard %x from <[["dp"], []], partial = ["tp"]> to <[["dp"], ["tp"]]> cause "fc" : tensor<8x8xf32>
  // A parameter keeps its layout, which gives the position of a rank's shard.
  // CHECK: mtp.parameter "w" {layout = #mtp.layout<{{\[\[}}], ["tp"]]>} : tensor<8x2xf32>
  %w = mtp.parameter "w" {layout = #mtp.layout<[[], ["tp"]]>} : tensor<8x8xf32>
  mtp.yield {layouts = []}
}

// A sharded tensor becomes replicated, then partial, one axis at a time.
// CHECK-LABEL: mtp.segment @two_steps
mtp.segment @two_steps () attributes {layouts = []} {
  %x = mtp.parameter "x7" {layout = #mtp.layout<[["dp"], ["tp"]]>} : tensor<8x8xf32>
  // CHECK: %[[WHOLE:.*]] = mtp.all_gather %{{.*}} over "tp" dim 1 cause "fc" : (tensor<4x2xf32>) -> tensor<4x8xf32>
  // CHECK: mtp.mask %[[WHOLE]] over "tp" cause "fc" : tensor<4x8xf32>
  %y = mtp.reshard %x from <[["dp"], ["tp"]]> to <[["dp"], []], partial = ["tp"]> cause "fc" : tensor<8x8xf32>
  mtp.yield {layouts = []}
}

// CHECK-LABEL: mtp.segment @largest
mtp.segment @largest () attributes {layouts = []} {
  %l = mtp.parameter "l" {layout = #mtp.layout<[[], [], ["tp"]]>} : tensor<2x4x8xf32>
  %m = mtp.vocab_max "m" (%l) {classes = 8 : i64, mtp.strategy = #mtp.strategy<"tp" = "v">} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  // CHECK: mtp.all_reduce %{{.*}} over "tp" max cause "m" : tensor<2x4xf32>
  %y = mtp.reshard %m from <[[], []], partial = ["tp"], max> to <[[], []]> cause "m" : tensor<2x4xf32>
  mtp.yield {layouts = []}
}
}
