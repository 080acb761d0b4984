// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// The exact GELU, by erf.
// CHECK-LABEL: @gelu
mtp.segment @gelu () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.activation "act" gelu(%{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %y = mtp.activation "act" gelu(%x) : tensor<2x4x8xf32>
  mtp.yield
}

// The approximation of GELU by tanh.
// CHECK-LABEL: @gelu_tanh
mtp.segment @gelu_tanh () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.activation "act" gelu_tanh(%{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %y = mtp.activation "act" gelu_tanh(%x) : tensor<2x4x8xf32>
  mtp.yield
}

// SiLU is x times the sigmoid of x.
// CHECK-LABEL: @silu
mtp.segment @silu () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.activation "act" silu(%{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %y = mtp.activation "act" silu(%x) : tensor<2x4x8xf32>
  mtp.yield
}

// Negative elements become zero.
// CHECK-LABEL: @relu
mtp.segment @relu () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.activation "act" relu(%{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %y = mtp.activation "act" relu(%x) : tensor<2x4x8xf32>
  mtp.yield
}

// The hyperbolic tangent.
// CHECK-LABEL: @tanh
mtp.segment @tanh () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.activation "act" tanh(%{{[a-z0-9_]+}}) : tensor<2x4x8xf32>
  %y = mtp.activation "act" tanh(%x) : tensor<2x4x8xf32>
  mtp.yield
}
