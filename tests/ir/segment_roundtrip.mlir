// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// One copy, the first: neither is printed.
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

// Copies 3 to 5.
// CHECK: mtp.segment @late repeat 3 first 3 (%{{.+}}: tensor<2x4x8xf32>) {
mtp.segment @late repeat 3 first 3 (%x: tensor<2x4x8xf32>) {
  %y = mtp.scale "h.*.late"(%x) by 2.0 : tensor<2x4x8xf32>
  mtp.yield %y : tensor<2x4x8xf32>
}

// Layouts of the arguments are an attribute.
// CHECK: mtp.segment @planned (%{{.+}}: tensor<2x4x8xf32>)
// CHECK-SAME: attributes {layouts = [#mtp.layout<{{\[\["dp"\], \[\], \[\]\]}}>]} {
mtp.segment @planned (%x: tensor<2x4x8xf32>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
  mtp.yield
}
