// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @no_arrow () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{needs an equation of two operands and a result, as in "ab,bc->ac", got "bsi,io"}}
  %y = mtp.einsum "fc" "bsi,io"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// -----

mtp.segment @three_operands () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{needs an equation of two operands and a result, as in "ab,bc->ac", got "bsi,io,o->bso"}}
  %y = mtp.einsum "fc" "bsi,io,o->bso"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// -----

mtp.segment @not_a_letter () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{got "bs1,1o->bso"}}
  %y = mtp.einsum "fc" "bs1,1o->bso"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// -----

mtp.segment @lhs_of_another_rank () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{lhs has 3 dimensions, but "si" names 2}}
  %y = mtp.einsum "fc" "si,io->so"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  mtp.yield
}

// -----

mtp.segment @rhs_of_another_rank () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{rhs has 2 dimensions, but "iob" names 3}}
  %y = mtp.einsum "fc" "bsi,iob->bso"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_another_rank () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{result has 2 dimensions, but "bso" names 3}}
  %y = mtp.einsum "fc" "bsi,io->bso"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  mtp.yield
}

// -----

mtp.segment @letter_twice_in_one_term () {
  %x = mtp.parameter "x" : tensor<2x8x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{letter 'i' occurs 2 times in "bii", may occur once}}
  %y = mtp.einsum "fc" "bii,io->bo"(%x, %w) : (tensor<2x8x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  mtp.yield
}

// -----

mtp.segment @letter_in_one_term_only () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{letter 's' occurs in 1 of three terms, needs 2}}
  %y = mtp.einsum "fc" "bsi,io->bo"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  mtp.yield
}

// -----

mtp.segment @two_sizes_of_one_letter () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<9x16xf32>
  // expected-error @below {{letter 'i' is 8 in lhs but 9 in rhs}}
  %y = mtp.einsum "fc" "bsi,io->bso"(%x, %w) : (tensor<2x4x8xf32>, tensor<9x16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// -----

mtp.segment @result_of_another_size () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // expected-error @below {{letter 'o' is 16 in rhs but 15 in result}}
  %y = mtp.einsum "fc" "bsi,io->bso"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x15xf32>
  mtp.yield
}

// -----

mtp.segment @bias_of_another_size () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  %b = mtp.parameter "b" : tensor<8xf32>
  // expected-error @below {{bias has shape [8], needs [16]}}
  %y = mtp.einsum "fc" "bsi,io->bso"(%x, %w, %b) : (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<8xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// -----

mtp.segment @bias_of_two_dimensions () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  %b = mtp.parameter "b" : tensor<1x16xf32>
  // expected-error @below {{bias has shape [1, 16], needs [16]}}
  %y = mtp.einsum "fc" "bsi,io->bso"(%x, %w, %b) : (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<1x16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// -----

mtp.segment @bias_of_a_scalar () {
  %x = mtp.parameter "x" : tensor<8xf32>
  %w = mtp.parameter "w" : tensor<8xf32>
  %b = mtp.parameter "b" : tensor<1xf32>
  // expected-error @below {{result under a bias has 0 dimensions, needs at least 1}}
  %y = mtp.einsum "fc" "i,i->"(%x, %w, %b) : (tensor<8xf32>, tensor<8xf32>, tensor<1xf32>) -> tensor<f32>
  mtp.yield
}
