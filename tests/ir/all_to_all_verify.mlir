// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @no_such_axis () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{the mesh has no axis "pp"}}
  %y = mtp.all_to_all %x over "pp" split 1 join 2 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x1x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @split_beyond_the_tensor () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{split 3 is none of the tensor's 3 dimensions}}
  %y = mtp.all_to_all %x over "tp" split 3 join 2 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x1x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @join_beyond_the_tensor () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{join 4 is none of the tensor's 3 dimensions}}
  %y = mtp.all_to_all %x over "tp" split 1 join 4 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x1x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @one_dimension_twice () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{splits and joins one dimension, 1, needs two}}
  %y = mtp.all_to_all %x over "tp" split 1 join 1 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @does_not_divide () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{dimension 0 of 2 cannot be split over 4 ranks}}
  %y = mtp.all_to_all %x over "tp" split 0 join 2 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x1x32xf32>
  mtp.yield
}
}

// -----

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {
mtp.segment @result_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{result has type 'tensor<2x4x32xf32>', needs 'tensor<2x1x32xf32>'}}
  %y = mtp.all_to_all %x over "tp" split 1 join 2 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}
}
