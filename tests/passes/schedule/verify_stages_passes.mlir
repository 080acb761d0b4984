// RUN: mtplan-opt %s --split-input-file --mtp-verify-stages | FileCheck %s

// Without a pipeline there is nothing to object to.
// CHECK: mtp.segment @alone
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned} {
mtp.segment @alone () {
  mtp.yield
}
}

// -----

// Messages of two directions are two queues, and a sum over all stages needs no
// names.
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
