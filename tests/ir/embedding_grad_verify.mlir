// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @ids_of_floats () {
  %ids = mtp.parameter "ids" : tensor<2x4xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{ids needs integers, got elements of 'f32'}}
  %d = mtp.embedding_grad "wte.dw"(%ids, %dy) : (tensor<2x4xf32>, tensor<2x4x8xf32>) -> tensor<50x8xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_one_dimension () {
  %ids = mtp.input "ids" dims ["other", "other"] : tensor<2x4xi32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{result has 1 dimensions, needs 2}}
  %d = mtp.embedding_grad "wte.dw"(%ids, %dy) : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<50xf32>
  mtp.yield
}

// -----

mtp.segment @gradient_of_another_width () {
  %ids = mtp.input "ids" dims ["other", "other"] : tensor<2x4xi32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{gradient has shape [2, 4, 8], needs [2, 4, 9]}}
  %d = mtp.embedding_grad "wte.dw"(%ids, %dy) : (tensor<2x4xi32>, tensor<2x4x8xf32>) -> tensor<50x9xf32>
  mtp.yield
}
