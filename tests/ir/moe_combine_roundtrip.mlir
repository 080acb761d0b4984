// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The operands are expert outputs, gates and slots.
// CHECK-LABEL: @weighted
mtp.segment @weighted () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  // CHECK: %{{.+}} = mtp.moe_combine "l"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>) -> tensor<2x4x8xf32>
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}
