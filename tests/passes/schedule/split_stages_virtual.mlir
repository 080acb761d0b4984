// RUN: mtplan-opt %s --mtp-split-stages --mtp-verify-stages | FileCheck %s

// Four chunks on two stages: messages alternate between the stages, a parameter
// with two uses on one stage needs no sum over stages, and a module without
// backward halves sends no gradients.

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
// Values within a chunk are passed on without messages.
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
// No message is sent if no value is passed on.
// CHECK-NOT: carried_3
// CHECK: mtp.segment @e chunk 3 ()
mtp.segment @e chunk 3 () {
  mtp.yield
}
// Stage 0 adds both gradients of "x", so that the sum needs no collective, and
// stage 1 has no update.
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
