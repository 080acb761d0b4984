// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The operands are the output and its gradient.
// CHECK-LABEL: @from_the_output
mtp.segment @from_the_output () {
  %y = mtp.parameter "y" : tensor<2x4x8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.softmax_grad "p.grad"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %d = mtp.softmax_grad "p.grad"(%y, %dy) : tensor<2x4x8xf32>
  mtp.yield
}
