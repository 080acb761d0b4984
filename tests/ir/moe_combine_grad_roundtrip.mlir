// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The results are the gradients of the expert outputs and the gates.
// CHECK-LABEL: @two_results
mtp.segment @two_results () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.moe_combine_grad "l"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>, tensor<2x4x8xf32>) -> (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>)
  %y:2 = mtp.moe_combine_grad "l"(%x, %gates, %slots, %dy) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>, tensor<2x4x8xf32>) -> (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>)
  mtp.yield
}
