// RUN: mtplan-opt %s --verify-diagnostics
// RUN: not mtplan-opt %s

mtp.segment @one_label_in_both_halves () {
  %x = mtp.parameter "x" : tensor<4xf32>
  // expected-note @below {{the other operator is here}}
  %a = mtp.scale "op"(%x) by 2.0 : tensor<4xf32>
  mtp.backward () {
    // expected-error @below {{has the label "op", which another operator of the segment already has}}
    %b = mtp.scale "op"(%a) by 2.0 : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}
