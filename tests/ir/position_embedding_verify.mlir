// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @input_of_two_dimensions () {
  %x = mtp.parameter "x" : tensor<4x8xf32>
  %table = mtp.parameter "table" : tensor<4x8xf32>
  // expected-error @below {{input has 2 dimensions, needs 3}}
  %y = mtp.position_embedding "wpe"(%x, %table) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_another_type () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %table = mtp.parameter "table" : tensor<4x8xf32>
  // expected-error @below {{result has type 'tensor<2x4x8xbf16>', needs 'tensor<2x4x8xf32>'}}
  %y = mtp.position_embedding "wpe"(%x, %table) : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xbf16>
  mtp.yield
}

// -----

mtp.segment @table_of_three_dimensions () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %table = mtp.parameter "table" : tensor<1x4x8xf32>
  // expected-error @below {{table has 3 dimensions, needs 2}}
  %y = mtp.position_embedding "wpe"(%x, %table) : (tensor<2x4x8xf32>, tensor<1x4x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @too_few_rows () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %table = mtp.parameter "table" : tensor<3x8xf32>
  // expected-error @below {{table has 3 rows, needs at least 4}}
  %y = mtp.position_embedding "wpe"(%x, %table) : (tensor<2x4x8xf32>, tensor<3x8xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// -----

mtp.segment @rows_of_another_width () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %table = mtp.parameter "table" : tensor<4x9xf32>
  // expected-error @below {{table has rows of 9, needs 8}}
  %y = mtp.position_embedding "wpe"(%x, %table) : (tensor<2x4x8xf32>, tensor<4x9xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}
