// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The gate is the first operand.
// CHECK-LABEL: @gate_and_up
mtp.segment @gate_and_up () {
  %g = mtp.parameter "g" : tensor<2x4x8xf32>
  %u = mtp.parameter "u" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.swiglu "act"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %y = mtp.swiglu "act"(%g, %u) : tensor<2x4x8xf32>
  mtp.yield
}
