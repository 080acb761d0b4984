// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Logits beyond the number of classes are padding.
// CHECK-LABEL: @padded_classes
mtp.segment @padded_classes () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  %m = mtp.parameter "m" : tensor<2x4xf32>
  // CHECK: %{{.+}} = mtp.vocab_sum_exp "sum_exp"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {classes = 47 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = mtp.vocab_sum_exp "sum_exp"(%l, %m) {classes = 47 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  mtp.yield
}
