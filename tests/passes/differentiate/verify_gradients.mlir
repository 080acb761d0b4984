// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-gradients
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-gradients

mtp.segment @lost () {
  // expected-error @below {{parameter "w" has 0 mtp.accumulate in the backward half of @lost, needs 1}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  mtp.adamw "w", %g : tensor<4xf32>
}

// -----

mtp.segment @no_backward_half () {
  // expected-error @below {{parameter "w" has 0 mtp.accumulate in the backward half of @no_backward_half, needs 1}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  mtp.adamw "w", %g : tensor<4xf32>
}

// -----

mtp.segment @counted_twice () {
  // expected-error @below {{parameter "w" has 2 mtp.accumulate in the backward half of @counted_twice, needs 1}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    // expected-note @below {{one is here}}
    mtp.accumulate "w", %w : tensor<4xf32>
    // expected-note @below {{one is here}}
    mtp.accumulate "w", %w : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  mtp.adamw "w", %g : tensor<4xf32>
}

// -----

mtp.segment @of_another_type () {
  // expected-error @below {{parameter "w" of type 'tensor<4xf32>' gets a mtp.accumulate of type 'tensor<2xf32>'}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    %two = mtp.input "two" dims ["other"] : tensor<2xf32>
    // expected-note @below {{here}}
    mtp.accumulate "w", %two : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  mtp.adamw "w", %g : tensor<4xf32>
}

// -----

mtp.segment @not_updated () {
  // expected-error @below {{parameter "w" has 0 mtp.adamw in the update, needs 1}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    mtp.accumulate "w", %w : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}

// -----

mtp.segment @updated_twice () {
  // expected-error @below {{parameter "w" has 2 mtp.adamw in the update, needs 1}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    mtp.accumulate "w", %w : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  // expected-note @below {{one is here}}
  mtp.adamw "w", %g : tensor<4xf32>
  // expected-note @below {{one is here}}
  mtp.adamw "w", %g : tensor<4xf32>
}

// -----

mtp.segment @updated_with_another_type () {
  // expected-error @below {{parameter "w" of type 'tensor<4xf32>' gets a mtp.adamw of type 'tensor<4xbf16>'}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    mtp.accumulate "w", %w : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xbf16>
  // expected-note @below {{here}}
  mtp.adamw "w", %g : tensor<4xbf16>
}

// -----

// A tied parameter is accumulated in every segment that reads it.
mtp.segment @tied_first () {
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    mtp.accumulate "w", %w : tensor<4xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.segment @tied_second () {
  // expected-error @below {{parameter "w" has 0 mtp.accumulate in the backward half of @tied_second, needs 1}}
  %w = mtp.parameter "w" : tensor<4xf32>
  mtp.backward () {
    mtp.yield
  }
  mtp.yield
}
mtp.update {
  %g = mtp.accumulated "w" : tensor<4xf32>
  mtp.adamw "w", %g : tensor<4xf32>
}
