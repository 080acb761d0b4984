// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The table has as many rows as there are positions.
// CHECK-LABEL: @as_many_rows_as_positions
mtp.segment @as_many_rows_as_positions () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %table = mtp.parameter "table" : tensor<4x8xf32>
  // CHECK: %{{.+}} = mtp.position_embedding "wpe"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.position_embedding "wpe"(%x, %table) : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// A short sequence reads the first rows.
// CHECK-LABEL: @more_rows_than_positions
mtp.segment @more_rows_than_positions () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %table = mtp.parameter "more_rows_than_positions.table" : tensor<6x8xf32>
  // CHECK: %{{.+}} = mtp.position_embedding "wpe"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.position_embedding "wpe"(%x, %table) : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
