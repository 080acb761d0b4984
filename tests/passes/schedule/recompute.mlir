// RUN: mtplan-opt %s --mtp-differentiate --mtp-recompute | FileCheck %s --check-prefix=FULL
// RUN: mtplan-opt %s --mtp-differentiate --mtp-recompute="what=selective" | FileCheck %s --check-prefix=CORE
// RUN: mtplan-opt %s --mtp-differentiate --mtp-recompute --mtp-verify-gradients
// RUN: not mtplan-opt %s --mtp-recompute="what=some" 2>&1 | FileCheck %s --check-prefix=SOME

// SOME: recomputes full or selective, not "some"

mtp.segment @embed () {
  %w = mtp.parameter "wte.weight" : tensor<16x8xf32>
  %ids = mtp.input "ids" dims ["batch", "sequence"] below 16 : tensor<1x4xi32>
  %x = mtp.embedding "wte" (%ids, %w) : (tensor<1x4xi32>, tensor<16x8xf32>) -> tensor<1x4x8xf32>
  mtp.yield %x : tensor<1x4x8xf32>
}

// An attention with dropout and a residual. Backward reads the norm's input, q,
// k, v, and the two results of the attention core.
//
// FULL-LABEL: mtp.segment @h repeat 2
// FULL-SAME: (%[[X:.+]]: tensor<1x4x8xf32>)
// FULL: %[[GAMMA:.+]] = mtp.parameter "h.*.ln.weight"
// FULL: mtp.backward (%[[DY:.+]]: tensor<1x4x8xf32>) {
// Recomputation starts from the argument and the weights.
// FULL-NEXT: %[[N:.+]] = mtp.rms_norm "h.*.ln.again"(%[[X]], %[[GAMMA]])
// FULL-NEXT: %[[Q:.+]] = mtp.einsum "h.*.q.again" "bsi,io->bso"(%[[N]], %{{.+}})
// FULL-NEXT: %[[K:.+]] = mtp.einsum "h.*.k.again" "bsi,io->bso"(%[[N]], %{{.+}})
// FULL-NEXT: %[[V:.+]] = mtp.einsum "h.*.v.again" "bsi,io->bso"(%[[N]], %{{.+}})
// FULL-NEXT: %[[A:.+]], %[[LSE:.+]] = mtp.attention "h.*.core.again"(%[[Q]], %[[K]], %[[V]]) {causal = true, head_dim = 4 : i64, mask = "h.*.core", rate = 1.000000e-01 : f64
// The projection and the add are not recomputed: backward does not read them.
// FULL-NOT: h.*.proj.again
// FULL-NOT: h.*.add.again
// FULL: mtp.attention_grad "h.*.core.grad"(%[[Q]], %[[K]], %[[V]], %[[A]], %[[LSE]], %{{.+}})
// FULL: mtp.rms_norm_grad "h.*.ln.grad"(%[[X]], %[[GAMMA]], %{{.+}})

// CORE-LABEL: mtp.segment @h repeat 2
// CORE: %[[N:.+]] = mtp.rms_norm "h.*.ln"
// CORE: %[[Q:.+]] = mtp.einsum "h.*.q" "
// CORE: %[[K:.+]] = mtp.einsum "h.*.k" "
// CORE: %[[V:.+]] = mtp.einsum "h.*.v" "
// CORE: %[[A:.+]], %[[LSE:.+]] = mtp.attention "h.*.core"
// CORE: mtp.backward
// CORE-NOT: %[[LSE]]
// Only the core is recomputed, right before its gradient.
// CORE: mtp.einsum "h.*.proj.dw" {{.*}}(%[[A]],
// CORE: %[[A2:.+]], %[[LSE2:.+]] = mtp.attention "h.*.core.again"(%[[Q]], %[[K]], %[[V]])
// CORE-NEXT: mtp.attention_grad "h.*.core.grad"(%[[Q]], %[[K]], %[[V]], %[[A2]], %[[LSE2]], %{{.+}})
// CORE-NOT: again
mtp.segment @h repeat 2 (%x : tensor<1x4x8xf32>) {
  %gamma = mtp.parameter "h.*.ln.weight" {init = "ones"} : tensor<8xf32>
  %wq = mtp.parameter "h.*.q.weight" : tensor<8x8xf32>
  %wk = mtp.parameter "h.*.k.weight" : tensor<8x8xf32>
  %wv = mtp.parameter "h.*.v.weight" : tensor<8x8xf32>
  %wo = mtp.parameter "h.*.proj.weight" : tensor<8x8xf32>
  %n = mtp.rms_norm "h.*.ln" (%x, %gamma) : (tensor<1x4x8xf32>, tensor<8xf32>) -> tensor<1x4x8xf32>
  %q = mtp.einsum "h.*.q" "bsi,io->bso" (%n, %wq) : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
  %k = mtp.einsum "h.*.k" "bsi,io->bso" (%n, %wk) : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
  %v = mtp.einsum "h.*.v" "bsi,io->bso" (%n, %wv) : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
  %a, %lse = mtp.attention "h.*.core" (%q, %k, %v) {head_dim = 4 : i64, causal = true, scale = 0.5 : f64, rate = 0.1 : f64, mask = "h.*.core"}
      : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x2xf32>)
  %o = mtp.einsum "h.*.proj" "bsi,io->bso" (%a, %wo) : (tensor<1x4x8xf32>, tensor<8x8xf32>) -> tensor<1x4x8xf32>
  %y = mtp.add "h.*.add" (%x, %o) : tensor<1x4x8xf32>
  mtp.yield %y : tensor<1x4x8xf32>
}

// A segment that is not repeated is not recomputed.
// FULL-LABEL: mtp.segment @head
// FULL-NOT: again
mtp.segment @head (%x : tensor<1x4x8xf32>) {
  %w = mtp.parameter "wte.weight" : tensor<16x8xf32>
  %targets = mtp.input "targets" dims ["batch", "sequence"] below 16 : tensor<1x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %l = mtp.einsum "lm_head" "bsi,vi->bsv" (%x, %w) : (tensor<1x4x8xf32>, tensor<16x8xf32>) -> tensor<1x4x16xf32>
  %m = mtp.vocab_max "loss.max" (%l) {classes = 16 : i64} : (tensor<1x4x16xf32>) -> tensor<1x4xf32>
  %e = mtp.vocab_sum_exp "loss.sum_exp" (%l, %m) {classes = 16 : i64} : (tensor<1x4x16xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %p = mtp.vocab_pick "loss.pick" (%l, %targets) : (tensor<1x4x16xf32>, tensor<1x4xi32>) -> tensor<1x4xf32>
  %loss = mtp.token_loss "loss" (%m, %e, %p, %targets, %count) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xi32>, tensor<f32>) -> tensor<f32>
  mtp.accumulate "loss", %loss : tensor<f32>
  mtp.yield
}
