// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The losses of all tokens are summed to a scalar.
// CHECK-LABEL: @a_scalar
mtp.segment @a_scalar () {
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %p = mtp.parameter "p" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // CHECK: %{{.+}} = mtp.token_loss "loss"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %t, %c) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.yield
}
