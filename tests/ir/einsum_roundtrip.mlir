// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// A product of an activation and a weight.
// CHECK-LABEL: @without_bias
mtp.segment @without_bias () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  // CHECK: %{{.+}} = mtp.einsum "fc" "bsi,io->bso"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  %y = mtp.einsum "fc" "bsi,io->bso"(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// The bias is a third operand.
// CHECK-LABEL: @with_bias
mtp.segment @with_bias () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "w" : tensor<8x16xf32>
  %b = mtp.parameter "b" : tensor<16xf32>
  // CHECK: %{{.+}} = mtp.einsum "fc" "bsi,io->bso"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  %y = mtp.einsum "fc" "bsi,io->bso"(%x, %w, %b) : (tensor<2x4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  mtp.yield
}

// Attributes name the row and column letters if they are not i and o.
// CHECK-LABEL: @letters_of_its_own
mtp.segment @letters_of_its_own () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %w = mtp.parameter "letters_of_its_own.w" : tensor<50x8xf32>
  // CHECK: %{{.+}} = mtp.einsum "head" "bsh,vh->bsv"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {column = "v", row = "h"} : (tensor<2x4x8xf32>, tensor<50x8xf32>) -> tensor<2x4x50xf32>
  %y = mtp.einsum "head" "bsh,vh->bsv"(%x, %w) {column = "v", row = "h"} : (tensor<2x4x8xf32>, tensor<50x8xf32>) -> tensor<2x4x50xf32>
  mtp.yield
}
