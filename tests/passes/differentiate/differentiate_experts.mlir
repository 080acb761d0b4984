// RUN: mtplan-opt %s --mtp-differentiate | FileCheck %s
// RUN: mtplan-opt %s --mtp-differentiate --mtp-differentiate | FileCheck %s

// Slots have no gradient: the router's gradient is the sum of those of the
// gates and the balance loss. Each layer reports its own balance loss.
// CHECK-LABEL: @h repeat 2
mtp.segment @h repeat 2 () {
  %x = mtp.parameter "h.*.x" : tensor<2x4x8xf32>
  %w = mtp.parameter "h.*.router.weight" : tensor<8x3xf32>
  %count = mtp.input "count" dims [] : tensor<f32>
  // CHECK: %[[Z:.+]] = mtp.einsum "h.*.router"
  %z = mtp.einsum "h.*.router" "bsi,ie->bse"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x3xf32>) -> tensor<2x4x3xf32>
  // CHECK: %[[G:.+]] = mtp.moe_gate "h.*.gate"
  %g = mtp.moe_gate "h.*.gate"(%z) {normalise, top_k = 2 : i64} : tensor<2x4x3xf32>
  // CHECK: %[[T:.+]] = mtp.moe_slots "h.*.slots"
  %t = mtp.moe_slots "h.*.slots"(%z) {top_k = 2 : i64} : (tensor<2x4x3xf32>) -> tensor<2x4x3xi32>
  // CHECK: %[[B:.+]] = mtp.balance_loss "h.*.balance"
  // CHECK-NEXT: mtp.accumulate "h.*.balance", %[[B]]
  %b = mtp.balance_loss "h.*.balance"(%z, %count) {coefficient = 0.01 : f64, top_k = 2 : i64} : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[D:.+]] = mtp.moe_dispatch "h.*.dispatch"
  %d = mtp.moe_dispatch "h.*.dispatch"(%x, %t) : (tensor<2x4x8xf32>, tensor<2x4x3xi32>) -> tensor<3x2x3x8xf32>
  // CHECK: mtp.moe_combine "h.*.combine"
  %y = mtp.moe_combine "h.*.combine"(%d, %g, %t) : (tensor<3x2x3x8xf32>, tensor<2x4x3xf32>, tensor<2x4x3xi32>) -> tensor<2x4x8xf32>
  // CHECK: mtp.vocab_max
  %targets = mtp.input "targets" dims ["batch", "sequence"] : tensor<2x4xi32>
  %m = mtp.vocab_max "h.*.max"(%y) {classes = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "h.*.sum_exp"(%y, %m) {classes = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "h.*.pick"(%y, %targets) : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "h.*.loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  // CHECK: mtp.backward
  // CHECK: %[[DP:.+]], %[[DC:.+]] = mtp.moe_combine_grad "h.*.combine.grad"(%[[D]], %[[G]], %[[T]], %{{.+}})
  // CHECK-NEXT: %[[DX:.+]] = mtp.moe_dispatch_grad "h.*.dispatch.grad"(%[[T]], %[[DP]])
  // CHECK-NEXT: %[[DB:.+]] = mtp.balance_loss_grad "h.*.balance.grad"(%[[Z]], %{{.+}}) {coefficient = 1.000000e-02 : f64, top_k = 2 : i64}
  // CHECK-NEXT: %[[DG:.+]] = mtp.moe_gate_grad "h.*.gate.grad"(%[[Z]], %[[DC]]) {normalise, top_k = 2 : i64}
  // CHECK-NEXT: %[[DZ:.+]] = mtp.add "h.*.gate.sum"(%[[DB]], %[[DG]])
  // CHECK-NEXT: mtp.einsum "h.*.router.dlhs" "bse,ie->bsi"(%[[DZ]], %{{.+}})
  mtp.yield
}

// CHECK: mtp.update
// CHECK: %[[R:.+]] = mtp.accumulated "h.*.balance"
// CHECK-NEXT: mtp.result "h.*.balance", %[[R]]
