// RUN: mtplan-opt --mtp-begin-sums --split-input-file --verify-diagnostics %s
// RUN: not mtplan-opt --mtp-begin-sums --split-input-file %s

// expected-error @below {{has no tasks, so the first run is unknown}}
module {
}

// -----

module attributes {mtp.tasks = [array<i64: 0, 0, 0>]} {
  mtp.segment @in () {
    %x = mtp.input "x" dims ["batch"] : tensor<4xf32>
    mtp.backward (%dx : tensor<4xf32>) {
      mtp.yield
    }
    mtp.yield %x : tensor<4xf32>
  }
  mtp.segment @h (%x : tensor<4xf32>) {
    %w = mtp.parameter "w" : tensor<4xf32>
    mtp.backward (%dx : tensor<4xf32>) {
      // expected-error @below {{adds to a sum that has no first term}}
      mtp.accumulate "w", %dx : tensor<4xf32>
      mtp.yield %dx : tensor<4xf32>
    }
    mtp.yield %x : tensor<4xf32>
  }
}
