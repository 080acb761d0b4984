// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The result is the target's logit of each token.
// CHECK-LABEL: @one_per_token
mtp.segment @one_per_token () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %t = mtp.input "t" dims ["other", "other"] : tensor<2x4xi32>
  // CHECK: %{{.+}} = mtp.vocab_pick "pick"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x50xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "pick"(%l, %t) : (tensor<2x4x50xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  mtp.yield
}
