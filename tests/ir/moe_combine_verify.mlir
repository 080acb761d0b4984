// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @tokens_of_two_dimensions () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  // expected-error @below {{result has 2 dimensions, needs 3}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>) -> tensor<4x8xf32>
  mtp.yield
}

// -----

mtp.segment @slots_of_floats () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.parameter "slots" : tensor<2x4x6xf32>
  // expected-error @below {{slots needs integers, got elements of 'f32'}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @slots_of_two_dimensions () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other"] : tensor<4x6xi32>
  // expected-error @below {{slots has 2 dimensions, needs 3}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<4x6xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @places_of_three_dimensions () {
  %x = mtp.parameter "x" : tensor<6x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  // expected-error @below {{input has 3 dimensions, needs 4}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @slots_of_other_positions () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x5x6xi32>
  // expected-error @below {{slots has shape [2, 5, 6], needs [2, 4, 6]}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x5x6xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @slots_of_other_experts () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x5xi32>
  // expected-error @below {{slots has shape [2, 4, 5], needs [2, 4, 6]}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x5xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @places_of_other_samples () {
  %x = mtp.parameter "x" : tensor<6x1x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  // expected-error @below {{input has shape [6, 1, 3, 8], needs [6, 2, 3, 8]}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x1x3x8xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @places_of_another_width () {
  %x = mtp.parameter "x" : tensor<6x2x3x7xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x6xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  // expected-error @below {{input has shape [6, 2, 3, 7], needs [6, 2, 3, 8]}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x7xf32>, tensor<2x4x6xf32>, tensor<2x4x6xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @gates_of_other_experts () {
  %x = mtp.parameter "x" : tensor<6x2x3x8xf32>
  %gates = mtp.parameter "gates" : tensor<2x4x5xf32>
  %slots = mtp.input "slots" dims ["other", "other", "other"] : tensor<2x4x6xi32>
  // expected-error @below {{gates has shape [2, 4, 5], needs [2, 4, 6]}}
  %y = mtp.moe_combine "l"(%x, %gates, %slots) : (tensor<6x2x3x8xf32>, tensor<2x4x5xf32>, tensor<2x4x6xi32>) -> tensor<2x4x8xf32>
  mtp.yield
}
