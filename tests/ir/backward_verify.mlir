// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

mtp.segment @too_few_arguments () {
  %x = mtp.parameter "x" : tensor<4xf32>
  // expected-error @below {{has 0 arguments, the segment's yielded values are 1}}
  mtp.backward () {
    mtp.yield
  }
  // expected-note @below {{the segment's yielded values are here}}
  mtp.yield %x : tensor<4xf32>
}

// -----

mtp.segment @argument_of_another_type () {
  %x = mtp.parameter "x" : tensor<4xf32>
  // expected-error @below {{arguments have another type than the segment's yielded values: number 0 is 'tensor<4xbf16>', needs 'tensor<4xf32>'}}
  mtp.backward (%dx: tensor<4xbf16>) {
    mtp.yield
  }
  // expected-note @below {{the segment's yielded values are here}}
  mtp.yield %x : tensor<4xf32>
}

// -----

mtp.segment @before () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.yield %x : tensor<4xf32>
}
// expected-note @below {{the segment's arguments are here}}
mtp.segment @gradient_not_handed_back (%x: tensor<4xf32>) {
  // expected-error @below {{has 0 yielded gradients, the segment's arguments are 1}}
  mtp.backward () {
    mtp.yield
  }
  mtp.yield
}

// -----

mtp.segment @before () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.yield %x : tensor<4xf32>
}
// expected-note @below {{the segment's arguments are here}}
mtp.segment @gradient_of_another_type (%x: tensor<4xf32>) {
  %y = mtp.parameter "y" : tensor<2xf32>
  // expected-error @below {{yielded gradients have another type than the segment's arguments: number 0 is 'tensor<2xf32>', needs 'tensor<4xf32>'}}
  mtp.backward () {
    mtp.yield %y : tensor<2xf32>
  }
  mtp.yield
}

// -----

mtp.segment @no_yield () {
  // expected-error @below {{needs to end in mtp.yield}}
  mtp.backward () {
    %x = mtp.parameter "x" : tensor<4xf32>
  }
  mtp.yield
}

// -----

// expected-error @below {{expects parent op 'mtp.segment'}}
mtp.backward () {
  mtp.yield
}

// -----

// Once partitioned, a gradient may be sharded though its value is replicated.
module attributes {mtp.partitioned} {
mtp.segment @first () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.backward (%dx: tensor<2xf32>) {
    mtp.yield
  }
  mtp.yield %x : tensor<4xf32>
}
mtp.segment @second (%x: tensor<4xf32>) {
  %dx = mtp.parameter "piece" : tensor<2xf32>
  mtp.backward () {
    mtp.yield %dx : tensor<2xf32>
  }
  mtp.yield
}
}

// -----

// A backward half yields what the previous segment's backward half receives.
module attributes {mtp.partitioned} {
mtp.segment @first () {
  %x = mtp.parameter "x" : tensor<4xf32>
  // expected-error @below {{arguments have another type than the gradients of the next segment's arguments: number 0 is 'tensor<4xf32>', needs 'tensor<2xf32>'}}
  mtp.backward (%dx: tensor<4xf32>) {
    mtp.yield
  }
  mtp.yield %x : tensor<4xf32>
}
mtp.segment @second (%x: tensor<4xf32>) {
  %dx = mtp.parameter "piece" : tensor<2xf32>
  mtp.backward () {
    // expected-note @below {{the gradients of the next segment's arguments are here}}
    mtp.yield %dx : tensor<2xf32>
  }
  mtp.yield
}
}

// -----

// In a repeated segment, the layer before receives the yielded gradients.
module attributes {mtp.partitioned} {
mtp.segment @first () {
  %x = mtp.parameter "x" : tensor<4xf32>
  mtp.yield %x : tensor<4xf32>
}
mtp.segment @copies repeat 2 (%x: tensor<4xf32>) {
  %piece = mtp.parameter "piece" : tensor<2xf32>
  // expected-error @below {{yielded gradients have another type than the arguments of the layer before: number 0 is 'tensor<2xf32>', needs 'tensor<4xf32>'}}
  // expected-note @below {{the arguments of the layer before are here}}
  mtp.backward (%dx: tensor<4xf32>) {
    mtp.yield %piece : tensor<2xf32>
  }
  mtp.yield %x : tensor<4xf32>
}
}
