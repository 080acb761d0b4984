// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Only the logits have a gradient.
// CHECK-LABEL: @logits
mtp.segment @logits () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // CHECK: %{{.+}} = mtp.balance_loss_grad "l"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {coefficient = 1.000000e-02 : f64, top_k = 2 : i64} : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  %y = mtp.balance_loss_grad "l"(%logits, %count) {coefficient = 1.000000e-02 : f64, top_k = 2 : i64} : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  mtp.yield
}
