// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @vector_of_another_width () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<6xf32>
  // expected-error @below {{vector has shape [6], needs [8]}}
  %p = mtp.put_first "p"(%x, %v) : (tensor<2x4x8xf32>, tensor<6xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @no_positions () {
  %x = mtp.parameter "x" : tensor<2x8xf32>
  %v = mtp.parameter "v" : tensor<8xf32>
  // expected-error @below {{input has 2 dimensions, needs 3}}
  %p = mtp.put_first "p"(%x, %v) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  mtp.yield
}

// -----

mtp.segment @gradient_of_another_vector () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{vector gradient has shape [4], needs [8]}}
  %g, %h = mtp.put_first_grad "g"(%x) : (tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<4xf32>)
  mtp.yield
}

// -----

mtp.segment @another_position () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // expected-error @below {{result has shape [4, 8], needs [2, 8]}}
  %t = mtp.take_first "t"(%x) : (tensor<2x4x8xf32>) -> tensor<4x8xf32>
  mtp.yield
}

// -----

mtp.segment @gradient_of_another_batch () {
  %x = mtp.parameter "x" : tensor<3x8xf32>
  // expected-error @below {{gradient has shape [3, 8], needs [2, 8]}}
  %t = mtp.take_first_grad "t"(%x) : (tensor<3x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
