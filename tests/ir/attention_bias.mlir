// RUN: mtplan-opt %s --split-input-file --verify-diagnostics | mtplan-opt --split-input-file | FileCheck %s

// CHECK-LABEL: @biased
mtp.segment @biased () {
  %q = mtp.parameter "q" : tensor<2x4x16xf32>
  %k = mtp.parameter "k" : tensor<2x6x8xf32>
  %n = mtp.parameter "n" : tensor<8x4xf32>
  // CHECK: mtp.attention "core"(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}) {causal = false, head_dim = 4 : i64, mask = "core", max_distance = 16 : i64, rate
  %y, %lse = mtp.attention "core"(%q, %k, %k, %n) {causal = false, head_dim = 4 : i64, mask = "core", max_distance = 16 : i64, rate = 0.0 : f64, scale = 0.5 : f64} : (tensor<2x4x16xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x4xf32>)
  // CHECK: mtp.attention_grad "grad"({{.*}}) -> (tensor<2x4x16xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>)
  %dq, %dk, %dv, %dn = mtp.attention_grad "grad"(%q, %k, %k, %y, %lse, %y, %n) {causal = false, head_dim = 4 : i64, mask = "core", max_distance = 16 : i64, rate = 0.0 : f64, scale = 0.5 : f64} : (tensor<2x4x16xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x4x16xf32>, tensor<2x4x4xf32>, tensor<2x4x16xf32>, tensor<8x4xf32>) -> (tensor<2x4x16xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<8x4xf32>)
  mtp.yield
}
