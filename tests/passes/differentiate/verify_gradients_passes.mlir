// RUN: mtplan-opt %s --mtp-verify-gradients -o %t
// RUN: mtplan-opt %s | diff %t -

// A complete module passes unchanged.
mtp.segment @first () {
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    mtp.accumulate "w", %w : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.segment @second repeat 2 () {
  %w = mtp.parameter "w" : tensor<4xf32>
  %v = mtp.parameter "h.*.v" : tensor<2x2xf32>
  mtp.backward () {
    mtp.accumulate "h.*.v", %v : tensor<2x2xf32>
    mtp.accumulate "w", %w : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  mtp.adamw "w", %g : tensor<4xf32>
  %h = mtp.accumulated "h.*.v" : tensor<2x2xf32>
  mtp.adamw "h.*.v", %h {decay} : tensor<2x2xf32>
}
