// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-insert-collectives
// RUN: not mtplan-opt %s --split-input-file --mtp-insert-collectives

// expected-error @below {{has no mesh to be partitioned for}}
module {
mtp.segment @no_mesh () {
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @not_planned () {
  // expected-error @below {{has a value without a layout}}
  %x = mtp.parameter "x" : tensor<4x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @does_not_divide () {
  // expected-error @below {{does not fit 'tensor<3x8xf32>'}}
  %x = mtp.parameter "x" {layout = #mtp.layout<[["tp"], []]>} : tensor<3x8xf32>
  mtp.yield
}
}
