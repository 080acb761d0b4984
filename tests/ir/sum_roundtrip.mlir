// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The gradient of a bias sums all but the last dimension.
// CHECK-LABEL: @to_the_last_dimension
mtp.segment @to_the_last_dimension () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.sum "db"(%{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>) -> tensor<8xf32>
  %y = mtp.sum "db"(%x) : (tensor<2x4x8xf32>) -> tensor<8xf32>
  mtp.yield
}

// No dimension is kept.
// CHECK-LABEL: @to_a_scalar
mtp.segment @to_a_scalar () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.sum "db"(%{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>) -> tensor<f32>
  %y = mtp.sum "db"(%x) : (tensor<2x4x8xf32>) -> tensor<f32>
  mtp.yield
}
