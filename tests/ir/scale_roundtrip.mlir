// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The factor is a constant of the operator.
// CHECK-LABEL: @by_a_constant
mtp.segment @by_a_constant () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.scale "op"(%{{[a-z0-9_]+}}) by 2.500000e-01 : tensor<2x4x8xf32>
  %y = mtp.scale "op"(%x) by 2.500000e-01 : tensor<2x4x8xf32>
  mtp.yield
}
