// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The mask is named by an attribute.
// CHECK-LABEL: @a_tenth
mtp.segment @a_tenth () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.dropout "drop"(%{{[a-z0-9_]+}}) {mask = "drop", rate = 1.000000e-01 : f64} : tensor<2x4x8xf32>
  %y = mtp.dropout "drop"(%x) {mask = "drop", rate = 1.000000e-01 : f64} : tensor<2x4x8xf32>
  mtp.yield
}
