// RUN: mtplan-opt %s --mtp-split-stages --mtp-verify-stages | FileCheck %s

// Four chunks on two stages: the last message goes round to the other stage
// again, what one stage has twice is no longer its neighbour's, and a module
// without backward halves sends none.

// CHECK: mtp.mesh<"pp" = 2, "dp" = 2>
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned, mtp.stages = 2 : i64} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.yield %x : tensor<2xf32>
}
// CHECK: mtp.send "carried_1.0", %{{.*}} to 1
// CHECK-NOT: mtp.backward
// CHECK: mtp.receive "carried_1.0" from 0
mtp.segment @b chunk 1 (%x : tensor<2xf32>) {
  mtp.yield %x : tensor<2xf32>
}
// CHECK: mtp.send "carried_2.0", %{{.*}} to 0
// CHECK: mtp.receive "carried_2.0" from 1
// Within a chunk values pass as they did.
// CHECK: mtp.segment @c repeat 2 chunk 2 (%
mtp.segment @c repeat 2 chunk 2 (%x : tensor<2xf32>) {
  %y = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %y : tensor<2xf32>
  mtp.yield %x : tensor<2xf32>
}
// CHECK: mtp.segment @d chunk 2 (%
mtp.segment @d chunk 2 (%x : tensor<2xf32>) {
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.yield
}
// Where nothing is carried nothing is sent.
// CHECK-NOT: carried_3
// CHECK: mtp.segment @e chunk 3 ()
mtp.segment @e chunk 3 () {
  mtp.yield
}
// Both sums are of stage 0: there is nobody to sum with, and stage 1 has
// nothing to do.
// CHECK: mtp.update on 0 {
// CHECK-NEXT: mtp.accumulated "x"
// CHECK-NEXT: mtp.adamw "x"
// CHECK-NEXT: }
// CHECK-NOT: mtp.update
mtp.update {
  %s = mtp.accumulated "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
}
}
