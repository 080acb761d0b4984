// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The results are the gradients of gate and up.
// CHECK-LABEL: @two_results
mtp.segment @two_results () {
  %g = mtp.parameter "g" : tensor<2x4x8xf32>
  %u = mtp.parameter "u" : tensor<2x4x8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.swiglu_grad "act.grad"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %d:2 = mtp.swiglu_grad "act.grad"(%g, %u, %dy) : tensor<2x4x8xf32>
  mtp.yield
}
