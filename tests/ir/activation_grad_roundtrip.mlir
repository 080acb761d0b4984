// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The operands are the input and the gradient of the output.
// CHECK-LABEL: @of_gelu
mtp.segment @of_gelu () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.activation_grad "act.grad" gelu(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %d = mtp.activation_grad "act.grad" gelu(%x, %dy) : tensor<2x4x8xf32>
  mtp.yield
}
