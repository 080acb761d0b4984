// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Six experts have a capacity of three tokens for each of two samples.
// CHECK-LABEL: @places
mtp.segment @places () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  // CHECK: %{{.+}} = mtp.moe_dispatch "l"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<2x4x6xi32>) -> tensor<6x2x3x8xf32>
  %y = mtp.moe_dispatch "l"(%x, %slots) : (tensor<2x4x8xf32>, tensor<2x4x6xi32>) -> tensor<6x2x3x8xf32>
  mtp.yield
}
