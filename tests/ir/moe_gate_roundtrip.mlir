// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// Gates are normalised to a sum of one.
// CHECK-LABEL: @normalised
mtp.segment @normalised () {
  %logits = mtp.parameter "logits" : tensor<2x4x6xf32>
  // CHECK: %{{.+}} = mtp.moe_gate "l"(%{{[a-z0-9_]+}}) {normalise, top_k = 2 : i64} : tensor<2x4x6xf32>
  %y = mtp.moe_gate "l"(%logits) {normalise, top_k = 2 : i64} : tensor<2x4x6xf32>
  mtp.yield
}
