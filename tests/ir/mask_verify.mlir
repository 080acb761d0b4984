// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @no_such_axis () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{the mesh has no axis "pp"}}
  %y = mtp.mask %x over "pp" cause "fc.bias" : tensor<2x4x8xf32>
  mtp.yield
}
}

// -----

mtp.segment @no_mesh () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs a mesh, but the module has no mtp.mesh}}
  %y = mtp.mask %x over "tp" cause "fc.bias" : tensor<2x4x8xf32>
  mtp.yield
}
