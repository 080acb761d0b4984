// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Gates are softmax values without normalisation.
// CHECK-LABEL: @as_they_are
mtp.segment @as_they_are () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x6xf32>
  // CHECK: %{{.+}} = mtp.moe_gate_grad "l"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {top_k = 2 : i64} : tensor<2x4x6xf32>
  %y = mtp.moe_gate_grad "l"(%logits, %dy) {top_k = 2 : i64} : tensor<2x4x6xf32>
  mtp.yield
}
