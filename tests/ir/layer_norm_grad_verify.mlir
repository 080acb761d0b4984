// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @gamma_of_another_size () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<4xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{gamma has shape [4], needs [8]}}
  %d:3 = mtp.layer_norm_grad "ln.grad"(%x, %g, %dy) : (tensor<2x4x8xf32>, tensor<4xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  mtp.yield
}

// -----

mtp.segment @gradient_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x9xf32>
  // expected-error @below {{gradient has type 'tensor<2x4x9xf32>', needs 'tensor<2x4x8xf32>'}}
  %d:3 = mtp.layer_norm_grad "ln.grad"(%x, %g, %dy) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x9xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  mtp.yield
}

// -----

mtp.segment @input_gradient_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{input gradient has type 'tensor<8xf32>', needs 'tensor<2x4x8xf32>'}}
  %d:3 = mtp.layer_norm_grad "ln.grad"(%x, %g, %dy) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  mtp.yield
}

// -----

mtp.segment @gamma_gradient_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{gamma gradient has type 'tensor<4xf32>', needs 'tensor<8xf32>'}}
  %d:3 = mtp.layer_norm_grad "ln.grad"(%x, %g, %dy) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<4xf32>, tensor<8xf32>)
  mtp.yield
}

// -----

mtp.segment @beta_gradient_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %g = mtp.parameter "g" : tensor<8xf32>
  %dy = mtp.parameter "dy" : tensor<2x4x8xf32>
  // expected-error @below {{beta gradient has type 'tensor<4xf32>', needs 'tensor<8xf32>'}}
  %d:3 = mtp.layer_norm_grad "ln.grad"(%x, %g, %dy) : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>, tensor<4xf32>)
  mtp.yield
}
