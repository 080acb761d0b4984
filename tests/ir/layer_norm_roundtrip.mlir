// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The default epsilon, 1e-5, is not printed.
// CHECK-LABEL: @default_epsilon
mtp.segment @default_epsilon () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %b = mtp.parameter "b" : tensor<8xf32>
  // CHECK: %{{.+}} = mtp.layer_norm "ln"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.layer_norm "ln"(%x, %g, %b) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// Another epsilon is printed.
// CHECK-LABEL: @another_epsilon
mtp.segment @another_epsilon () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %b = mtp.parameter "b" : tensor<8xf32>
  // CHECK: %{{.+}} = mtp.layer_norm "ln"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {epsilon = 9.9999999999999998E-13 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.layer_norm "ln"(%x, %g, %b) {epsilon = 9.9999999999999998E-13 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// CHECK-LABEL: @heads
mtp.segment @heads () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "head_gain" : tensor<4xf32>
  %b = mtp.parameter "head_bias" : tensor<4xf32>
  // CHECK: %{{.+}} = mtp.layer_norm "ln"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {head_dim = 4 : i64} : (tensor<2x4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8xf32>
  %y = mtp.layer_norm "ln"(%x, %g, %b) {head_dim = 4 : i64} : (tensor<2x4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
