// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @gradient_of_two_dimensions () {
  %dy = mtp.parameter "dy" : tensor<4x8xf32>
  // expected-error @below {{gradient has 2 dimensions, needs 3}}
  %d = mtp.position_embedding_grad "wpe.dw"(%dy) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_one_dimension () {
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{result has 1 dimensions, needs 2}}
  %d = mtp.position_embedding_grad "wpe.dw"(%dy) : (tensor<2x4x8xf32>) -> tensor<8xf32>
  mtp.yield
}

// -----

mtp.segment @too_few_rows () {
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{result has 3 rows, needs at least 4}}
  %d = mtp.position_embedding_grad "wpe.dw"(%dy) : (tensor<2x4x8xf32>) -> tensor<3x8xf32>
  mtp.yield
}

// -----

mtp.segment @rows_of_another_width () {
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{result has rows of 9, needs 8}}
  %d = mtp.position_embedding_grad "wpe.dw"(%dy) : (tensor<2x4x8xf32>) -> tensor<4x9xf32>
  mtp.yield
}
