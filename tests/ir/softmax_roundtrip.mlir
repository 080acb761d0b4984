// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Operand and result have the same type.
// CHECK-LABEL: @over_rows
mtp.segment @over_rows () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.softmax "p"(%{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %y = mtp.softmax "p"(%x) : tensor<2x4x8xf32>
  mtp.yield
}
