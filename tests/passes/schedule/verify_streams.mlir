// RUN: mtplan-opt --mtp-verify-streams --split-input-file --verify-diagnostics %s
// RUN: not mtplan-opt --mtp-verify-streams --split-input-file %s

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @none (%x : tensor<4x4xf32>) {
  // expected-error @below {{has no stream}}
  %y = mtp.scale "s"(%x) by 2.0 : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @unknown (%x : tensor<4x4xf32>) {
  // expected-error @below {{is on stream "river", which is unknown}}
  %y = mtp.scale "s"(%x) by 2.0 {mtp.stream = "river"} : tensor<4x4xf32>
  mtp.yield %y : tensor<4x4xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] {mtp.stream = "compute"} : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @torn (%x : tensor<4x4xf32>) {
  %y = mtp.dropout "d"(%x) {rate = 0.1 : f64, mask = "m", mtp.stream = "compute"} : tensor<4x4xf32>
  // expected-error @below {{is on stream "data", but fused with an operation on "compute"}}
  %z = mtp.add "a"(%y, %x) {mtp.fused = "epilogue", mtp.stream = "data"} : tensor<4x4xf32>
  mtp.yield %z : tensor<4x4xf32>
}
