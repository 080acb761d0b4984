// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The results are the gradients of queries, keys and values.
// CHECK-LABEL: @three_results
mtp.segment @three_results () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<2x4x8xf32>
  %o = mtp.parameter "o" : tensor<2x4x16xf32>
  %lse = mtp.parameter "lse" : tensor<2x4x4xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x16xf32>
  // CHECK: %{{.+}} = mtp.attention_grad "core.grad"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x4xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  %d:3 = mtp.attention_grad "core.grad"(%q, %k, %v, %o, %lse, %dy) {causal = true, head_dim = 4 : i64, mask = "core", rate = 0.000000e+00 : f64, scale = 5.000000e-01 : f64} : (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x16xf32>, tensor<2x4x4xf32>, tensor<2x4x16xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  mtp.yield
}
