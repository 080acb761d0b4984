// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{needs to repeat at least 1 time, got 0}}
mtp.segment @no_copy repeat 0 () {
  mtp.yield
}

// -----

// expected-error @below {{needs a first layer of at least 0, got -1}}
mtp.segment @copies_before_the_first repeat 2 first -1 () {
  mtp.yield
}

// -----

// expected-error @below {{has 1 yielded values, the arguments of the next layer are 0}}
// expected-note @below {{the arguments of the next layer are here}}
mtp.segment @copies_that_do_not_fit repeat 2 () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.yield %x : tensor<4xf32>
}

// -----

mtp.segment @before () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.yield %x : tensor<4xf32>
}
// expected-error @below {{yielded values have another type than the arguments of the next layer: number 0 is 'tensor<2xf32>', needs 'tensor<4xf32>'}}
// expected-note @below {{the arguments of the next layer are here}}
mtp.segment @copies_of_other_types repeat 2 (%x: tensor<4xf32>) {
  %y = mtp.parameter "y" : tensor<2xf32>
  mtp.yield %y : tensor<2xf32>
}

// -----

// expected-error @below {{is the first segment but has 1 arguments, needs 0}}
mtp.segment @first_with_an_argument (%x: tensor<4xf32>) {
  mtp.yield
}

// -----

mtp.segment @hands_on_one () {
  %x = mtp.parameter "x" : tensor<4xf32>
  // expected-note @below {{the values of the previous segment are here}}
  mtp.yield %x : tensor<4xf32>
}
// expected-error @below {{has 0 arguments, the values of the previous segment are 1}}
mtp.segment @receives_none () {
  mtp.yield
}

// -----

mtp.segment @hands_on_four () {
  %x = mtp.parameter "x" : tensor<4xf32>
  // expected-note @below {{the values of the previous segment are here}}
  mtp.yield %x : tensor<4xf32>
}
// expected-error @below {{arguments have another type than the values of the previous segment: number 0 is 'tensor<5xf32>', needs 'tensor<4xf32>'}}
mtp.segment @receives_five (%x: tensor<5xf32>) {
  mtp.yield
}

// -----

// expected-error @below {{needs at most one mtp.backward, right before the mtp.yield}}
mtp.segment @two_backward_halves () {
  // expected-note @below {{but there is one here}}
  mtp.backward () {
    mtp.yield
  }
  mtp.backward () {
    mtp.yield
  }
  mtp.yield
}

// -----

// expected-error @below {{needs at most one mtp.backward, right before the mtp.yield}}
mtp.segment @forward_after_backward () {
  // expected-note @below {{but there is one here}}
  mtp.backward () {
    mtp.yield
  }
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.yield
}

// -----

// expected-error @below {{needs to end in mtp.yield}}
mtp.segment @no_yield () {
  %x = mtp.parameter "x" : tensor<4xf32>
}

// -----

// expected-error @below {{needs a chunk of at least 0, got -1}}
mtp.segment @negative_chunk chunk -1 () {
  mtp.yield
}
