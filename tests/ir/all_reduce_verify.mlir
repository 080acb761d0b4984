// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @no_such_axis () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{the mesh has no axis "pp"}}
  %y = mtp.all_reduce %x over "pp" cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}
}

// -----

mtp.segment @no_mesh () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs a mesh, but the module has no mtp.mesh}}
  %y = mtp.all_reduce %x over "tp" cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 4>} {
mtp.segment @alone () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{needs at least 2 coordinates to be among, got 1}}
  %y = mtp.all_reduce %x over "pp" among [3] cause "fc" : tensor<2xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 4>} {
mtp.segment @no_such_coordinate () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{is among coordinate 4 of axis "pp", which has 4}}
  %y = mtp.all_reduce %x over "pp" among [0, 4] cause "fc" : tensor<2xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"pp" = 4>} {
mtp.segment @twice () {
  %x = mtp.parameter "x" : tensor<2xf32>
  // expected-error @below {{needs ascending coordinates to be among, got 2 before 2}}
  %y = mtp.all_reduce %x over "pp" among [2, 2] cause "fc" : tensor<2xf32>
  mtp.yield
}
}
