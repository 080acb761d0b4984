// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @no_such_axis () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{the mesh has no axis "pp"}}
  %y = mtp.all_gather %x over "pp" dim 2 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @no_such_dimension () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{dim 3 is none of the tensor's 3 dimensions}}
  %y = mtp.all_gather %x over "tp" dim 3 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @a_negative_dimension () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{dim -1 is none of the tensor's 3 dimensions}}
  %y = mtp.all_gather %x over "tp" dim -1 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @too_long () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{result has type 'tensor<2x4x32xf32>', needs 'tensor<2x4x16xf32>'}}
  %y = mtp.all_gather %x over "dp" dim 2 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @along_another_dimension () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{result has type 'tensor<2x4x32xf32>', needs 'tensor<2x16x8xf32>'}}
  %y = mtp.all_gather %x over "tp" dim 1 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"tp" = 2000000000>} {
mtp.segment @longer_than_any_tensor () {
  %x = mtp.parameter "x" : tensor<9000000000000000000xf32>
  // expected-error @below {{needs a dimension longer than any tensor's over 2000000000 ranks}}
  %y = mtp.all_gather %x over "tp" dim 0 cause "fc" : (tensor<9000000000000000000xf32>) -> tensor<32xf32>
  mtp.yield
}
}

// -----

mtp.segment @no_mesh () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{needs a mesh, but the module has no mtp.mesh}}
  %y = mtp.all_gather %x over "tp" dim 2 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}
