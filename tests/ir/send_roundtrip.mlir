// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "tp" = 4>, mtp.partitioned} {

// CHECK-LABEL: mtp.segment @first chunk 0 ()
mtp.segment @first chunk 0 () {
  %x = mtp.parameter "x" : tensor<2x4xf32>
  // CHECK: mtp.send "carried_1.0", %{{[a-z0-9_]+}} to 1 : tensor<2x4xf32>
  mtp.send "carried_1.0", %x to 1 : tensor<2x4xf32>
  mtp.backward () {
    // CHECK: %{{.+}} = mtp.receive "carried_1.0.grad" from 1 : tensor<2x4xf32>
    %dx = mtp.receive "carried_1.0.grad" from 1 : tensor<2x4xf32>
    mtp.yield
  }
  mtp.yield
}

// CHECK-LABEL: mtp.segment @last repeat 2 first 3 chunk 1 ()
mtp.segment @last repeat 2 first 3 chunk 1 () {
  // CHECK: %{{.+}} = mtp.receive "carried_1.0" from 0 : tensor<2x4xf32>
  %x = mtp.receive "carried_1.0" from 0 : tensor<2x4xf32>
  mtp.yield
}

// CHECK: mtp.update on 0 {
mtp.update on 0 {
  %g = mtp.accumulated "x" : tensor<2x4xf32>
  // CHECK: %{{.+}} = mtp.all_reduce %{{[a-z0-9_]+}} over "pp" among [0, 1] cause "x" : tensor<2x4xf32>
  %s = mtp.all_reduce %g over "pp" among [0, 1] cause "x" : tensor<2x4xf32>
}
// CHECK: mtp.update on 1 {
mtp.update on 1 {
}

}
