// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The results are the gradients of input, gain and shift.
// CHECK-LABEL: @three_results
mtp.segment @three_results () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.layer_norm_grad "ln.grad"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %d:3 = mtp.layer_norm_grad "ln.grad"(%x, %g, %dy) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  mtp.yield
}
