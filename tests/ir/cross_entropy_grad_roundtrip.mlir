// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The gradient has the shape of the logits.
// CHECK-LABEL: @of_the_logits
mtp.segment @of_the_logits () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  %s = mtp.parameter "s" : tensor<2x4xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  %c = mtp.parameter "c" : tensor<f32>
  // CHECK: %{{.+}} = mtp.cross_entropy_grad "loss.grad"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x50xf32>
  %d = mtp.cross_entropy_grad "loss.grad"(%l, %m, %s, %t, %c) {classes = 50 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<2x4x50xf32>
  mtp.yield
}
