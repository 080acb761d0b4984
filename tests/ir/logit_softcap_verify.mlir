// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @cap_of_zero () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{attribute 'cap' failed to satisfy constraint: 64-bit float attribute above 0}}
  %y = mtp.logit_softcap "cap"(%x) {cap = 0.0 : f64} : tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @gradient_with_a_negative_cap () {
  %y = mtp.parameter "y" : tensor<2x4x8xf32>
  // expected-error @below {{attribute 'cap' failed to satisfy constraint: 64-bit float attribute above 0}}
  %dx = mtp.logit_softcap_grad "cap.grad"(%y, %y) {cap = -1.0 : f64} : tensor<2x4x8xf32>
  mtp.yield
}
