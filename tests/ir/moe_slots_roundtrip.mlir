// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Slots are positions in a queue per expert and sample.
// CHECK-LABEL: @queues
mtp.segment @queues () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  // CHECK: %{{.+}} = mtp.moe_slots "l"(%{{[a-z0-9_]+}}) {top_k = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xi32>
  %y = mtp.moe_slots "l"(%logits) {top_k = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xi32>
  mtp.yield
}
