// RUN: mtplan-opt %s --mtp-differentiate | FileCheck %s
// RUN: mtplan-opt %s --mtp-differentiate --mtp-differentiate | FileCheck %s
// RUN: mtplan-opt %s --mtp-differentiate --mtp-verify-gradients
// RUN: mtplan-opt %s --mtp-differentiate -o %t.once
// RUN: mtplan-opt %t.once --mtp-differentiate | diff %t.once -

// The table has a gradient, integer ids have none, and positions pass it on.
// CHECK-LABEL: mtp.segment @embed
mtp.segment @embed () {
  // CHECK: %[[IDS:.+]] = mtp.input "ids"
  %ids = mtp.input "ids" dims ["batch", "sequence"] below 50 : tensor<2x4xi32>
  %wte = mtp.parameter "wte.weight" : tensor<50x8xf32>
  %wpe = mtp.parameter "wpe.weight" : tensor<4x8xf32>
  %x = mtp.embedding "wte"(%ids, %wte) : (tensor<2x4xi32>, tensor<50x8xf32>) -> tensor<2x4x8xf32>
  %y = mtp.position_embedding "wpe"(%x, %wpe) : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
  %z = mtp.dropout "embed.drop"(%y) {rate = 0.1 : f64, mask = "embed.drop"} : tensor<2x4x8xf32>
  // CHECK: mtp.backward (%[[DZ:.+]]: tensor<2x4x8xf32>) {
  // CHECK-NEXT: %[[DY:.+]] = mtp.dropout "embed.drop.dx"(%[[DZ]]) {mask = "embed.drop", rate = 1.000000e-01 : f64}
  // CHECK-NEXT: %[[DWPE:.+]] = mtp.position_embedding_grad "wpe.dw"(%[[DY]])
  // CHECK-NEXT: mtp.accumulate "wpe.weight", %[[DWPE]] : tensor<4x8xf32>
  // CHECK-NEXT: %[[DWTE:.+]] = mtp.embedding_grad "wte.dw"(%[[IDS]], %[[DY]])
  // CHECK-NEXT: mtp.accumulate "wte.weight", %[[DWTE]] : tensor<50x8xf32>
  // CHECK-NEXT: mtp.yield{{$}}
  mtp.yield %z : tensor<2x4x8xf32>
}

// The gradients of a value that is read three times are added one by one, and a
// parameter is accumulated as soon as its gradient is complete.
// CHECK-LABEL: mtp.segment @h repeat 2
// CHECK-SAME: (%[[X:.+]]: tensor<2x4x8xf32>)
mtp.segment @h repeat 2 (%x: tensor<2x4x8xf32>) {
  %wq = mtp.parameter "h.*.q.weight" : tensor<8x8xf32>
  %wk = mtp.parameter "h.*.k.weight" : tensor<8x8xf32>
  %b = mtp.parameter "h.*.k.bias" {init = "zeros"} : tensor<8xf32>
  // CHECK: %[[WQ:.+]] = mtp.parameter "h.*.q.weight"
  // CHECK: %[[WK:.+]] = mtp.parameter "h.*.k.weight"
  %q = mtp.einsum "h.*.q" "bsi,io->bso"(%x, %wq) : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %k = mtp.einsum "h.*.k" "bsi,io->bso"(%x, %wk, %b) : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %m = mtp.mul "h.*.mul"(%q, %k) : tensor<2x4x8xf32>
  %y = mtp.add "h.*.add"(%x, %m) : tensor<2x4x8xf32>
  // CHECK: %[[Q:.+]] = mtp.einsum "h.*.q"
  // CHECK: %[[K:.+]] = mtp.einsum "h.*.k"
  // CHECK: mtp.backward (%[[DY:.+]]: tensor<2x4x8xf32>) {
  // CHECK-NEXT: %[[DQ:.+]] = mtp.mul "h.*.mul.dlhs"(%[[DY]], %[[K]])
  // CHECK-NEXT: %[[DK:.+]] = mtp.mul "h.*.mul.drhs"(%[[DY]], %[[Q]])
  // CHECK-NEXT: %[[DXK:.+]] = mtp.einsum "h.*.k.dx" "bso,io->bsi"(%[[DK]], %[[WK]])
  // CHECK-NEXT: %[[SUMK:.+]] = mtp.add "h.*.k.sum"(%[[DY]], %[[DXK]])
  // CHECK-NEXT: %[[DWK:.+]] = mtp.einsum "h.*.k.dw" "bsi,bso->io"(%[[X]], %[[DK]])
  // CHECK-NEXT: %[[DB:.+]] = mtp.sum "h.*.k.db"(%[[DK]])
  // CHECK-NEXT: mtp.accumulate "h.*.k.weight", %[[DWK]] : tensor<8x8xf32>
  // CHECK-NEXT: mtp.accumulate "h.*.k.bias", %[[DB]] : tensor<8xf32>
  // CHECK-NEXT: %[[DXQ:.+]] = mtp.einsum "h.*.q.dx" "bso,io->bsi"(%[[DQ]], %[[WQ]])
  // CHECK-NEXT: %[[SUMQ:.+]] = mtp.add "h.*.q.sum"(%[[SUMK]], %[[DXQ]])
  // CHECK-NEXT: %[[DWQ:.+]] = mtp.einsum "h.*.q.dw" "bsi,bso->io"(%[[X]], %[[DQ]])
  // CHECK-NEXT: mtp.accumulate "h.*.q.weight", %[[DWQ]] : tensor<8x8xf32>
  // CHECK-NEXT: mtp.yield %[[SUMQ]] : tensor<2x4x8xf32>
  mtp.yield %y : tensor<2x4x8xf32>
}

// Gradients begin at the loss, whose four operators have one gradient operator.
// The tied table is accumulated a second time.
// CHECK-LABEL: mtp.segment @head
mtp.segment @head (%x: tensor<2x4x8xf32>) {
  %targets = mtp.input "targets" dims ["batch", "sequence"] below 50 : tensor<2x4xi32>
  %count = mtp.input "count" dims [] : tensor<f32>
  %wte = mtp.parameter "wte.weight" : tensor<50x8xf32>
  %l = mtp.einsum "lm_head" "bsi,vi->bsv"(%x, %wte) {column = "v"} : (tensor<2x4x8xf32>, tensor<50x8xf32>) -> tensor<2x4x50xf32>
  %m = mtp.vocab_max "loss.max"(%l) {classes = 47 : i64} : (tensor<2x4x50xf32>) -> tensor<2x4xf32>
  %s = mtp.vocab_sum_exp "loss.sum_exp"(%l, %m) {classes = 47 : i64} : (tensor<2x4x50xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = mtp.vocab_pick "loss.pick"(%l, %targets) : (tensor<2x4x50xf32>, tensor<2x4xi32>) -> tensor<2x4xf32>
  %loss = mtp.token_loss "loss"(%m, %s, %p, %targets, %count) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xi32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[LOSS:.+]] = mtp.token_loss "loss"
  // CHECK-NEXT: mtp.accumulate "loss", %[[LOSS]] : tensor<f32>
  // CHECK-NEXT: mtp.backward () {
  // CHECK-NEXT: %[[DL:.+]] = mtp.cross_entropy_grad "loss.grad"({{.+}}) {classes = 47 : i64}
  // CHECK-NEXT: %[[DX:.+]] = mtp.einsum "lm_head.dx" "bsv,vi->bsi"(%[[DL]], {{.+}}) {column = "v"}
  // CHECK-NEXT: %[[DW:.+]] = mtp.einsum "lm_head.dw" "bsi,bsv->vi"({{.+}}, %[[DL]]) {column = "v"}
  // CHECK-NEXT: mtp.accumulate "wte.weight", %[[DW]] : tensor<50x8xf32>
  // CHECK-NEXT: mtp.yield %[[DX]] : tensor<2x4x8xf32>
  mtp.yield
}

// Each label has one update, also a tied one; vectors have no weight decay.
// CHECK: mtp.update {
// CHECK-NEXT: %[[G0:.+]] = mtp.accumulated "wte.weight" : tensor<50x8xf32>
// CHECK-NEXT: mtp.adamw "wte.weight", %[[G0]] {decay} : tensor<50x8xf32>
// CHECK-NEXT: %[[G1:.+]] = mtp.accumulated "wpe.weight" : tensor<4x8xf32>
// CHECK-NEXT: mtp.adamw "wpe.weight", %[[G1]] {decay} : tensor<4x8xf32>
// CHECK-NEXT: %[[G2:.+]] = mtp.accumulated "h.*.q.weight" : tensor<8x8xf32>
// CHECK-NEXT: mtp.adamw "h.*.q.weight", %[[G2]] {decay} : tensor<8x8xf32>
// CHECK-NEXT: %[[G3:.+]] = mtp.accumulated "h.*.k.weight" : tensor<8x8xf32>
// CHECK-NEXT: mtp.adamw "h.*.k.weight", %[[G3]] {decay} : tensor<8x8xf32>
// CHECK-NEXT: %[[G4:.+]] = mtp.accumulated "h.*.k.bias" : tensor<8xf32>
// CHECK-NEXT: mtp.adamw "h.*.k.bias", %[[G4]] : tensor<8xf32>
// CHECK-NEXT: %[[L:.+]] = mtp.accumulated "loss" : tensor<f32>
// CHECK-NEXT: mtp.result "loss", %[[L]] : tensor<f32>
// CHECK-NEXT: }
// CHECK-NOT: mtp.update
