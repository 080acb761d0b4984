// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Gradients of equal ids are summed.
// CHECK-LABEL: @rows_by_ids
mtp.segment @rows_by_ids () {
  %ids = mtp.input "ids" dims ["other", "other"] : tensor<2x4xi32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.embedding_grad "wte.dw"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<50x8xf32>
  %d = mtp.embedding_grad "wte.dw"(%ids, %dy) : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<50x8xf32>
  mtp.yield
}
