// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @ids_of_floats () {
  %ids = mtp.parameter "ids" : tensor<2x4xf32>
  %table = mtp.parameter "table" : tensor<50x8xf32>
  // expected-error @below {{ids needs integers, got elements of 'f32'}}
  %y = mtp.embedding "wte"(%ids, %table) : (tensor<2x4xf32>, tensor<50x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @table_of_three_dimensions () {
  %ids = mtp.input "ids" dims ["other", "other"] : tensor<2x4xi32>
  %table = mtp.parameter "table" : tensor<50x8x1xf32>
  // expected-error @below {{table has 3 dimensions, needs 2}}
  %y = mtp.embedding "wte"(%ids, %table) : (tensor<2x4xi32>, tensor<50x8x1xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @rows_of_another_width () {
  %ids = mtp.input "ids" dims ["other", "other"] : tensor<2x4xi32>
  %table = mtp.parameter "table" : tensor<50x8xf32>
  // expected-error @below {{result has shape [2, 4, 9], needs [2, 4, 8]}}
  %y = mtp.embedding "wte"(%ids, %table) : (tensor<2x4xi32>, tensor<50x8xf32>) -> tensor<2x4x9xf32>
  mtp.yield
}
