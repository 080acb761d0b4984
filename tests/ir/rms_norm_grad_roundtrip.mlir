// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The results are the gradients of input and gain.
// CHECK-LABEL: @two_results
mtp.segment @two_results () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.rms_norm_grad "ln.grad"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  %d:2 = mtp.rms_norm_grad "ln.grad"(%x, %g, %dy) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  mtp.yield
}
