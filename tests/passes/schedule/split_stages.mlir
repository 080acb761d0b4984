// RUN: mtplan-opt %s --mtp-split-stages --mtp-verify-stages | FileCheck %s
// RUN: mtplan-opt %s --mtp-split-stages --mtp-split-stages | FileCheck %s

// Three chunks on three stages. A value of the first passes through the second,
// unused, to the third; the first and the third read the table.

// CHECK: module attributes {mtp.mesh = #mtp.mesh<"pp" = 3, "tp" = 2>, mtp.partitioned} {
module attributes {mtp.mesh = #mtp.mesh<"tp" = 2>, mtp.partitioned, mtp.stages = 3 : i64} {

// CHECK-NEXT: mtp.segment @embed chunk 0 () {
mtp.segment @embed chunk 0 () {
  %w = mtp.parameter "wte.weight" : tensor<4x2xf32>
  %e = mtp.parameter "e" : tensor<2xf32>
  mtp.backward (%dw : tensor<4x2xf32>, %de : tensor<1xf32>) {
    mtp.accumulate "wte.weight", %dw : tensor<4x2xf32>
    mtp.accumulate "e", %e : tensor<2xf32>
    mtp.yield
  }
  mtp.yield %w, %e : tensor<4x2xf32>, tensor<2xf32>
}

// A gradient may have another layout than its value, and so be smaller. The
// name send_0 is taken by a segment below.
// CHECK: mtp.segment @send_0_ chunk 0 (%[[X:.*]]: tensor<4x2xf32>, %[[E:.*]]: tensor<2xf32>) {
// CHECK-NEXT:   mtp.send "carried_1.0", %[[X]] to 1 : tensor<4x2xf32>
// CHECK-NEXT:   mtp.send "carried_1.1", %[[E]] to 1 : tensor<2xf32>
// CHECK-NEXT:   mtp.backward () {
// CHECK-NEXT:     %[[DX:.*]] = mtp.receive "carried_1.0.grad" from 1 : tensor<4x2xf32>
// CHECK-NEXT:     %[[DE:.*]] = mtp.receive "carried_1.1.grad" from 1 : tensor<1xf32>
// CHECK-NEXT:     mtp.yield %[[DX]], %[[DE]] : tensor<4x2xf32>, tensor<1xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   mtp.yield
// CHECK-NEXT: }
// CHECK-NEXT: mtp.segment @receive_1 chunk 1 () {
// CHECK-NEXT:   %[[X:.*]] = mtp.receive "carried_1.0" from 0 : tensor<4x2xf32>
// CHECK-NEXT:   %[[E:.*]] = mtp.receive "carried_1.1" from 0 : tensor<2xf32>
// CHECK-NEXT:   mtp.backward (%[[DX:.*]]: tensor<4x2xf32>, %[[DE:.*]]: tensor<1xf32>) {
// CHECK-NEXT:     mtp.send "carried_1.0.grad", %[[DX]] to 0 : tensor<4x2xf32>
// CHECK-NEXT:     mtp.send "carried_1.1.grad", %[[DE]] to 0 : tensor<1xf32>
// CHECK-NEXT:     mtp.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   mtp.yield %[[X]], %[[E]] : tensor<4x2xf32>, tensor<2xf32>
// CHECK-NEXT: }

// CHECK-NEXT: mtp.segment @send_0 repeat 2 chunk 1 (
mtp.segment @send_0 repeat 2 chunk 1 (%x : tensor<4x2xf32>, %e : tensor<2xf32>) {
  %w = mtp.parameter "h.*.w" : tensor<4x2xf32>
  mtp.backward (%dx : tensor<4x2xf32>, %de : tensor<1xf32>) {
    mtp.accumulate "h.*.w", %dx : tensor<4x2xf32>
    mtp.yield %dx, %de : tensor<4x2xf32>, tensor<1xf32>
  }
  mtp.yield %x, %e : tensor<4x2xf32>, tensor<2xf32>
}

// A value that chunk 1 does not use is sent on.
// CHECK: mtp.segment @send_1 chunk 1 (
// CHECK-NEXT: mtp.send "carried_2.0", %{{.*}} to 2 : tensor<4x2xf32>
// CHECK-NEXT: mtp.send "carried_2.1", %{{.*}} to 2 : tensor<2xf32>
// CHECK: mtp.segment @receive_2 chunk 2 () {
// CHECK-NEXT: mtp.receive "carried_2.0" from 1 : tensor<4x2xf32>
// CHECK-NEXT: mtp.receive "carried_2.1" from 1 : tensor<2xf32>

// CHECK: mtp.segment @head chunk 2 (
mtp.segment @head chunk 2 (%x : tensor<4x2xf32>, %e : tensor<2xf32>) {
  %w = mtp.parameter "wte.weight" : tensor<4x2xf32>
  %l = mtp.parameter "l" : tensor<1xf32>
  mtp.accumulate "loss", %l : tensor<1xf32>
  mtp.backward () {
    mtp.accumulate "wte.weight", %w : tensor<4x2xf32>
    mtp.accumulate "l", %l : tensor<1xf32>
    mtp.yield %x, %l : tensor<4x2xf32>, tensor<1xf32>
  }
  mtp.yield
}

// Every stage updates its parameters. A tied gradient is summed over its two
// stages as late as possible, when it is smallest.
// CHECK:      mtp.update on 0 {
// CHECK-NEXT:   %[[G:.*]] = mtp.accumulated "wte.weight" : tensor<4x2xf32>
// CHECK-NEXT:   %[[P:.*]] = mtp.reduce_scatter %[[G]] over "tp" dim 0
// CHECK-NEXT:   %[[S:.*]] = mtp.all_reduce %[[P]] over "pp" among [0, 2] cause "wte.weight" : tensor<2x2xf32>
// CHECK-NEXT:   %[[W:.*]] = mtp.adamw "wte.weight", %[[S]]
// CHECK-NEXT:   mtp.all_gather %[[W]]
// CHECK-NEXT:   mtp.store
// CHECK-NEXT:   mtp.accumulated "e"
// CHECK-NEXT:   mtp.adamw "e"
// CHECK-NEXT: }
// CHECK-NEXT: mtp.update on 1 {
// CHECK-NEXT:   mtp.accumulated "h.*.w"
// CHECK-NEXT:   mtp.adamw "h.*.w"
// CHECK-NEXT: }
// CHECK-NEXT: mtp.update on 2 {
// CHECK-NEXT:   mtp.accumulated "wte.weight" : tensor<4x2xf32>
// CHECK-NEXT:   mtp.reduce_scatter
// CHECK-NEXT:   mtp.all_reduce {{.*}} over "pp" among [0, 2] cause "wte.weight" : tensor<2x2xf32>
// CHECK-NEXT:   mtp.adamw "wte.weight"
// CHECK-NEXT:   mtp.all_gather
// CHECK-NEXT:   mtp.store
// CHECK-NEXT:   mtp.accumulated "l"
// CHECK-NEXT:   mtp.adamw "l"
// CHECK-NEXT:   mtp.accumulated "loss"
// CHECK-NEXT:   mtp.result "loss"
// CHECK-NEXT: }
mtp.update {
  %g = mtp.accumulated "wte.weight" : tensor<4x2xf32>
  %p = mtp.reduce_scatter %g over "tp" dim 0 cause "wte.weight" : (tensor<4x2xf32>) -> tensor<2x2xf32>
  %u = mtp.adamw "wte.weight", %p {layout = #mtp.layout<[["tp"], []]>} : tensor<2x2xf32> -> tensor<2x2xf32>
  %w = mtp.all_gather %u over "tp" dim 0 cause "wte.weight" : (tensor<2x2xf32>) -> tensor<4x2xf32>
  mtp.store "wte.weight", %w : tensor<4x2xf32>
  %e = mtp.accumulated "e" : tensor<2xf32>
  mtp.adamw "e", %e : tensor<2xf32>
  %h = mtp.accumulated "h.*.w" : tensor<4x2xf32>
  mtp.adamw "h.*.w", %h : tensor<4x2xf32>
  %l = mtp.accumulated "l" : tensor<1xf32>
  mtp.adamw "l", %l : tensor<1xf32>
  %loss = mtp.accumulated "loss" : tensor<1xf32>
  mtp.result "loss", %loss : tensor<1xf32>
}
}
