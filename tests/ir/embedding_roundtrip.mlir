// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The result has a row of the table per id.
// CHECK-LABEL: @rows_by_ids
mtp.segment @rows_by_ids () {
  %ids = mtp.input "ids" dims ["other", "other"] : tensor<2x4xi32>
  %table = mtp.parameter "table" : tensor<50x8xf32>
  // CHECK: %{{.+}} = mtp.embedding "wte"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4xi32>, tensor<50x8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.embedding "wte"(%ids, %table) : (tensor<2x4xi32>, tensor<50x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
