// RUN: mtplan-opt %s --split-input-file --mtp-verify-stages | FileCheck %s

// A module without a pipeline passes.
// CHECK: mtp.segment @alone
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned} {
mtp.segment @alone () {
  mtp.yield
}
}

// -----

// Messages in the two directions are separate queues, and a sum over all stages
// needs no list of stages.
// CHECK: mtp.segment @a chunk 0
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.send "n", %x to 1 : tensor<2xf32>
  mtp.backward () {
    %b = mtp.receive "b" from 1 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.segment @b chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.accumulate "x", %x : tensor<2xf32>
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  %n = mtp.receive "n" from 0 : tensor<2xf32>
  mtp.backward () {
    mtp.send "b", %n to 0 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
}
mtp.update on 1 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2xf32>
  mtp.adamw "x", %s : tensor<2xf32>
}
}

// -----

// In backward, the last segment of a chunk runs first. The two gradients of a
// value that was sent twice are added in either order.
// CHECK: mtp.segment @c chunk 0
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @c chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.backward (%dx : tensor<2xf32>) {
    %p = mtp.receive "p.grad" from 1 : tensor<2xf32>
    mtp.accumulate "x", %dx : tensor<2xf32>
    mtp.yield
  }
  mtp.yield %x : tensor<2xf32>
}
mtp.segment @d chunk 0 (%x : tensor<2xf32>) {
  mtp.send "m", %x to 1 : tensor<2xf32>
  mtp.send "n", %x to 1 : tensor<2xf32>
  mtp.backward () {
    %n = mtp.receive "n.grad" from 1 : tensor<2xf32>
    %m = mtp.receive "m.grad" from 1 : tensor<2xf32>
    %dx = mtp.add "x.sum" (%m, %n) : tensor<2xf32>
    mtp.yield %dx : tensor<2xf32>
  }
  mtp.yield
}
mtp.segment @e chunk 1 () {
  %m = mtp.receive "m" from 0 : tensor<2xf32>
  %n = mtp.receive "n" from 0 : tensor<2xf32>
  mtp.backward (%dm : tensor<2xf32>, %dn : tensor<2xf32>) {
    mtp.send "n.grad", %dn to 0 : tensor<2xf32>
    mtp.send "m.grad", %dm to 0 : tensor<2xf32>
    mtp.send "p.grad", %dm to 0 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield %m, %n : tensor<2xf32>, tensor<2xf32>
}
mtp.segment @f chunk 1 (%m : tensor<2xf32>, %n : tensor<2xf32>) {
  mtp.backward () {
    mtp.yield %m, %n : tensor<2xf32>, tensor<2xf32>
  }
  mtp.yield
}
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2xf32>
  mtp.adamw "x", %g : tensor<2xf32>
}
}
