// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Logits beyond the number of classes are padding.
// CHECK-LABEL: @padded_classes
mtp.segment @padded_classes () {
  %l = mtp.parameter "l" : tensor<2x4x50xf32>
  // CHECK: %{{.+}} = mtp.vocab_max "max"(%{{[a-z0-9_]+}}) {classes = 47 : i64} : (tensor<2x4x50xf32>) -> tensor<2x4xf32>
  %m = mtp.vocab_max "max"(%l) {classes = 47 : i64} : (tensor<2x4x50xf32>) -> tensor<2x4xf32>
  mtp.yield
}
