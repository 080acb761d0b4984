// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// A segment that is not repeated prints neither repeat nor first.
// CHECK: mtp.segment @embed () {
mtp.segment @embed () {
  %ids = mtp.input "ids" dims ["batch", "sequence"] : tensor<2x4xi32>
  %w = mtp.parameter "wte.weight" : tensor<50x8xf32>
  %x = mtp.embedding "wte"(%ids, %w) : (tensor<2x4xi32>, tensor<50x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield %x : tensor<2x4x8xf32>
}

// CHECK: mtp.segment @early repeat 3 (%[[X:.+]]: tensor<2x4x8xf32>) {
mtp.segment @early repeat 3 (%x: tensor<2x4x8xf32>) {
  // CHECK-NEXT: %[[Y:.+]] = mtp.scale "h.*.early"(%[[X]])
  %y = mtp.scale "h.*.early"(%x) by 2.0 : tensor<2x4x8xf32>
  // CHECK-NEXT: mtp.yield %[[Y]] : tensor<2x4x8xf32>
  mtp.yield %y : tensor<2x4x8xf32>
}

// The repeated segment has layers 3 to 5.
// CHECK: mtp.segment @late repeat 3 first 3 (%{{.+}}: tensor<2x4x8xf32>) {
mtp.segment @late repeat 3 first 3 (%x: tensor<2x4x8xf32>) {
  %y = mtp.scale "h.*.late"(%x) by 2.0 : tensor<2x4x8xf32>
  mtp.yield %y : tensor<2x4x8xf32>
}

// The parts of a segment that is split have equal labels.
// CHECK: mtp.segment @later repeat 3 first 6
// CHECK-NEXT: mtp.scale "h.*.late"
mtp.segment @later repeat 3 first 6 (%x: tensor<2x4x8xf32>) {
  %y = mtp.scale "h.*.late"(%x) by 2.0 : tensor<2x4x8xf32>
  mtp.yield %y : tensor<2x4x8xf32>
}

// An attribute has the layouts of the arguments.
// CHECK: mtp.segment @planned (%{{.+}}: tensor<2x4x8xf32>)
// CHECK-SAME: attributes {layouts = [#mtp.layout<{{\[\["dp"\], \[\], \[\]\]}}>]} {
mtp.segment @planned (%x: tensor<2x4x8xf32>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
  mtp.yield
}
