// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Every pair of a head is rotated.
// CHECK-LABEL: @whole_heads
mtp.segment @whole_heads () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.rope "rope"(%{{[a-z0-9_]+}}) {head_dim = 4 : i64, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// Features beyond rotary_dim are unchanged.
// CHECK-LABEL: @part_of_a_head
mtp.segment @part_of_a_head () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.rope "rope"(%{{[a-z0-9_]+}}) {head_dim = 4 : i64, rotary_dim = 2 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, rotary_dim = 2 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// Pairs of neighbouring features are rotated by the inverse.
// CHECK-LABEL: @neighbours_and_back
mtp.segment @neighbours_and_back () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.rope "rope"(%{{[a-z0-9_]+}}) {head_dim = 4 : i64, interleaved, inverse, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  %y = mtp.rope "rope"(%x) {head_dim = 4 : i64, interleaved, inverse, rotary_dim = 4 : i64, theta = 1.000000e+04 : f64} : tensor<2x4x8xf32>
  mtp.yield
}
