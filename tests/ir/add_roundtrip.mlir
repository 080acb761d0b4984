// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Operands and result have the same type.
// CHECK-LABEL: @two_tensors
mtp.segment @two_tensors () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %y = mtp.parameter "y" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.add "op"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %z = mtp.add "op"(%x, %y) : tensor<2x4x8xf32>
  mtp.yield
}
