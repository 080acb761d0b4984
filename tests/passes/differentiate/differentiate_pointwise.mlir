// RUN: mtplan-opt %s --mtp-differentiate | FileCheck %s
// RUN: mtplan-opt %s --mtp-differentiate | mtplan-opt --mtp-verify-gradients

// The forward half has the remaining operators of a block; the backward half
// has their gradients in reverse order.
// CHECK-LABEL: mtp.segment @block
mtp.segment @block () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %b = mtp.parameter "b" : tensor<8xf32>
  // CHECK: %[[X:.+]] = mtp.parameter "x"
  // CHECK: %[[G:.+]] = mtp.parameter "g"
  %n = mtp.layer_norm "ln"(%x, %g, %b) {epsilon = 1.0e-6 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  // CHECK: %[[N:.+]] = mtp.layer_norm "ln"
  %q = mtp.rope "q_rope"(%n) {head_dim = 4 : i64, rotary_dim = 4 : i64, theta = 1.0e4 : f64} : tensor<2x4x8xf32>
  // CHECK: %[[Q:.+]] = mtp.rope "q_rope"
  %a, %lse = mtp.attention "core"(%q, %n, %n) {head_dim = 4 : i64, causal = true, scale = 0.5 : f64, rate = 0.25 : f64, mask = "core"} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x2xf32>)
  // CHECK: %[[A:.+]], %[[LSE:.+]] = mtp.attention "core"
  %act = mtp.activation "act" gelu_tanh(%a) : tensor<2x4x8xf32>
  // CHECK: %[[ACT:.+]] = mtp.activation "act"
  %s = mtp.swiglu "gate"(%act, %a) : tensor<2x4x8xf32>
  %t = mtp.scale "half"(%s) by 0.5 : tensor<2x4x8xf32>
  // CHECK: %[[T:.+]] = mtp.scale "half"
  %p = mtp.softmax "soft"(%t) : tensor<2x4x8xf32>
  // CHECK: %[[P:.+]] = mtp.softmax "soft"
  // CHECK: %[[R:.+]] = mtp.rms_norm "rms"
  %r = mtp.rms_norm "rms"(%p, %g) : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  // CHECK: mtp.backward (%[[D0:.+]]: tensor<2x4x8xf32>) {
  // The operator reads a value twice, and its two sums have different names.
  // CHECK-NEXT: %[[D1:.+]] = mtp.add "twice.sum"(%[[D0]], %[[D0]])
  // CHECK-NEXT: %[[DP:.+]], %[[DG:.+]] = mtp.rms_norm_grad "rms.grad"(%[[P]], %[[G]], %[[D1]])
  // CHECK-NEXT: %[[DT:.+]] = mtp.softmax_grad "soft.grad"(%[[P]], %[[DP]])
  // CHECK-NEXT: %[[DS:.+]] = mtp.scale "half.dx"(%[[DT]]) by 5.000000e-01
  // CHECK-NEXT: %[[DACT:.+]], %[[DA:.+]] = mtp.swiglu_grad "gate.grad"(%[[ACT]], %[[A]], %[[DS]])
  // CHECK-NEXT: %[[DA1:.+]] = mtp.activation_grad "act.grad" gelu_tanh(%[[A]], %[[DACT]])
  // CHECK-NEXT: %[[DA2:.+]] = mtp.add "act.sum"(%[[DA]], %[[DA1]])
  // CHECK-NEXT: %[[DQ:.+]], %[[DK:.+]], %[[DV:.+]] = mtp.attention_grad "core.grad"(%[[Q]], %[[N]], %[[N]], %[[A]], %[[LSE]], %[[DA2]]) {causal = true, head_dim = 4 : i64, mask = "core", rate = 2.500000e-01 : f64, scale = 5.000000e-01 : f64}
  // CHECK-NEXT: %[[DKV:.+]] = mtp.add "core.sum"(%[[DK]], %[[DV]])
  // CHECK-NEXT: %[[DQN:.+]] = mtp.rope "q_rope.dx"(%[[DQ]]) {head_dim = 4 : i64, inverse, rotary_dim = 4 : i64
  // CHECK-NEXT: %[[DN:.+]] = mtp.add "q_rope.sum"(%[[DKV]], %[[DQN]])
  // CHECK-NEXT: %[[DX:.+]], %[[DG1:.+]], %[[DB:.+]] = mtp.layer_norm_grad "ln.grad"(%[[X]], %[[G]], %[[DN]]) {epsilon = 9.9999999999999995E-7 : f64}
  // CHECK-NEXT: %[[DG2:.+]] = mtp.add "ln.sum"(%[[DG]], %[[DG1]])
  // CHECK-NEXT: mtp.accumulate "x", %[[DX]]
  // CHECK-NEXT: mtp.accumulate "g", %[[DG2]]
  // CHECK-NEXT: mtp.accumulate "b", %[[DB]]
  // CHECK-NEXT: mtp.yield{{$}}
  %z = mtp.add "twice"(%r, %r) : tensor<2x4x8xf32>
  mtp.yield %z : tensor<2x4x8xf32>
}

// The gradient of an operand that is no parameter is named after the operator,
// and a loss that is accumulated already is not accumulated again.
// CHECK-LABEL: mtp.segment @head
// CHECK-SAME: (%[[X:.+]]: tensor<2x4x8xf32>)
mtp.segment @head (%x: tensor<2x4x8xf32>) {
  %targets = mtp.input "targets" dims ["batch", "sequence"] below 4 : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %l = mtp.einsum "scores" "bsi,bti->bst"(%x, %x) : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x4xf32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 4 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 4 : i64} : (tensor<2x4x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x4xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  // CHECK: mtp.accumulate "loss"
  // CHECK-NOT: mtp.accumulate
  mtp.accumulate "loss", %loss : tensor<f32>
  // CHECK: %[[DL:.+]] = mtp.cross_entropy_grad "loss.grad"
  // CHECK-NEXT: %[[A:.+]] = mtp.einsum "scores.dlhs" "bst,bti->bsi"(%[[DL]], %[[X]])
  // CHECK-NEXT: %[[B:.+]] = mtp.einsum "scores.drhs" "bsi,bst->bti"(%[[X]], %[[DL]])
  // CHECK-NEXT: %[[DX:.+]] = mtp.add "scores.sum"(%[[A]], %[[B]])
  // CHECK-NEXT: mtp.yield %[[DX]]
  mtp.yield
}

// CHECK: mtp.update {
// CHECK: mtp.adamw "x"
// CHECK: mtp.adamw "g"
// CHECK: mtp.adamw "b"
// CHECK: mtp.result "loss"
