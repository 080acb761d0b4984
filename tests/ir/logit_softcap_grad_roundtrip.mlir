// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// CHECK-LABEL: @gradient_from_the_result
mtp.segment @gradient_from_the_result () {
  %y = mtp.parameter "y" : tensor<2x4x8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.logit_softcap_grad "cap.grad"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {cap = 3.000000e+01 : f64} : tensor<2x4x8xf32>
  %dx = mtp.logit_softcap_grad "cap.grad"(%y, %dy) {cap = 30.0 : f64} : tensor<2x4x8xf32>
  mtp.yield
}
