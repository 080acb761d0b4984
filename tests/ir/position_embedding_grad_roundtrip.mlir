// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Rows beyond the last position get zeros.
// CHECK-LABEL: @more_rows_than_positions
mtp.segment @more_rows_than_positions () {
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.position_embedding_grad "wpe.dw"(%{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>) -> tensor<6x8xf32>
  %d = mtp.position_embedding_grad "wpe.dw"(%dy) : (tensor<2x4x8xf32>) -> tensor<6x8xf32>
  mtp.yield
}
