// RUN: mtplan-opt --mtp-verify-fused --split-input-file --verify-diagnostics %s
// RUN: not mtplan-opt --mtp-verify-fused --split-input-file %s

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @kind (%x : tensor<4x4xf32>) {
  // expected-error @below {{is fused as "beside", which is unknown}}
  %y = mtp.scale "s"(%x) by 2.0 {mtp.fused = "beside"} : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @first (%x : tensor<4x4xf32>) {
  // expected-error @below {{is no epilogue of the operation before it}}
  %y = mtp.add "a"(%x, %x) {mtp.fused = "epilogue"} : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @apart (%x : tensor<4x4xf32>) {
  %y = mtp.dropout "d"(%x) {rate = 0.1 : f64, mask = "m"} : tensor<4x4xf32>
  %s = mtp.scale "s"(%x) by 2.0 : tensor<4x4xf32>
  // expected-error @below {{is no epilogue of the operation before it}}
  %z = mtp.add "a"(%y, %x) {mtp.fused = "epilogue"} : tensor<4x4xf32>
  mtp.yield %z : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}
mtp.segment @other (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>) {
  %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  // expected-error @below {{is no bias's gradient of a product before it}}
  %db = mtp.sum "fc.db"(%x) {mtp.fused = "bias_gradient"} : (tensor<2x6xf32>) -> tensor<6xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}
