// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The default epsilon, 1e-5, is not printed.
// CHECK-LABEL: @default_epsilon
mtp.segment @default_epsilon () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  // CHECK: %{{.+}} = mtp.rms_norm "ln"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.rms_norm "ln"(%x, %g) : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// CHECK-LABEL: @heads
mtp.segment @heads () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "head_gain" : tensor<4xf32>
  // CHECK: %{{.+}} = mtp.rms_norm "ln"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {head_dim = 4 : i64} : (tensor<2x4x8xf32>, tensor<4xf32>) -> tensor<2x4x8xf32>
  %y = mtp.rms_norm "ln"(%x, %g) {head_dim = 4 : i64} : (tensor<2x4x8xf32>, tensor<4xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
