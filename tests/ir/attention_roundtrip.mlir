// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Grouped-query attention: four query heads, two key/value heads.
// CHECK-LABEL: @two_heads_share_a_key
mtp.segment @two_heads_share_a_key () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.attention "core"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  mtp.yield
}

// A rank of a sharded sequence has fewer queries than keys.
// CHECK-LABEL: @queries_split
mtp.segment @queries_split () {
  %q = mtp.parameter "queries_split.q" : tensor<2x2x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.attention "core"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x2x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x2x16xf32>, tensor<2x2x4xf32>)
  %y, %lse = mtp.attention "core"(%q, %k, %v) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x2x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x2x16xf32>, tensor<2x2x4xf32>)
  mtp.yield
}
