// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The input of the dispatch is not an operand.
// CHECK-LABEL: @back_to_tokens
mtp.segment @back_to_tokens () {
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  %dy = mtp.parameter "dy" : tensor<6x2x3x8xf32>
  // CHECK: %{{.+}} = mtp.moe_dispatch_grad "l"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x6xi32>, tensor<6x2x3x8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.moe_dispatch_grad "l"(%slots, %dy) : (tensor<2x4x6xi32>, tensor<6x2x3x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
