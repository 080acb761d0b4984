// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// CHECK-LABEL: @cap_of_logits
mtp.segment @cap_of_logits () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.logit_softcap "cap"(%{{[a-z0-9_]+}}) {cap = 3.000000e+01 : f64} : tensor<2x4x8xf32>
  %y = mtp.logit_softcap "cap"(%x) {cap = 30.0 : f64} : tensor<2x4x8xf32>
  mtp.yield
}
