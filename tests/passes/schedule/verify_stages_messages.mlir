// RUN: mtplan-opt %s --split-input-file --verify-diagnostics --mtp-verify-stages
// RUN: not mtplan-opt %s --split-input-file --mtp-verify-stages

// Two chunks cannot be assigned to three stages: stage 2 has none.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 3>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  mtp.yield
}
// expected-error @below {{is in the last of 2 chunks, which is not a multiple of the 3 stages}}
mtp.segment @b chunk 1 () {
  mtp.yield
}
}

// -----

// In backward, the last segment runs first: "p", "q" and then "m" are sent, but
// "q", "m" and then "p" received. In the order of the text they would agree.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  mtp.backward () {
    %m = mtp.receive "m" from 1 : tensor<2xf32>
    %p = mtp.receive "p" from 1 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.segment @b chunk 0 () {
  mtp.backward () {
    // expected-error @below {{receives "q" where "p" is sent}}
    %q = mtp.receive "q" from 1 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.segment @c chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.backward () {
    mtp.send "m", %x to 0 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
mtp.segment @d chunk 1 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  mtp.backward () {
    // expected-note @below {{the other end is here}}
    mtp.send "p", %x to 0 : tensor<2xf32>
    mtp.send "q", %x to 0 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield
}
}

// -----

// Two gradients of the same type are swapped.
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2>, mtp.partitioned} {
mtp.segment @a chunk 0 () {
  %x = mtp.parameter "x" : tensor<2xf32>
  %y = mtp.parameter "y" : tensor<2xf32>
  mtp.backward (%dx : tensor<2xf32>, %dy : tensor<2xf32>) {
    mtp.accumulate "x", %dx : tensor<2xf32>
    mtp.accumulate "y", %dy : tensor<2xf32>
    mtp.yield
  }
  mtp.yield %x, %y : tensor<2xf32>, tensor<2xf32>
}
mtp.segment @send chunk 0 (%x : tensor<2xf32>, %y : tensor<2xf32>) {
  // expected-note @below {{the value is sent here}}
  mtp.send "x", %x to 1 : tensor<2xf32>
  mtp.send "y", %y to 1 : tensor<2xf32>
  mtp.backward () {
    // expected-error @below {{is yielded as the gradient of argument 1, but is that of argument 0}}
    %dx = mtp.receive "x.grad" from 1 : tensor<2xf32>
    %dy = mtp.receive "y.grad" from 1 : tensor<2xf32>
    mtp.yield %dy, %dx : tensor<2xf32>, tensor<2xf32>
  }
  mtp.yield
}
mtp.segment @receive chunk 1 () {
  %x = mtp.receive "x" from 0 : tensor<2xf32>
  %y = mtp.receive "y" from 0 : tensor<2xf32>
  mtp.backward (%dx : tensor<2xf32>, %dy : tensor<2xf32>) {
    mtp.send "x.grad", %dx to 0 : tensor<2xf32>
    mtp.send "y.grad", %dy to 0 : tensor<2xf32>
    mtp.yield
  }
  mtp.yield %x, %y : tensor<2xf32>, tensor<2xf32>
}
mtp.segment @b chunk 1 (%x : tensor<2xf32>, %y : tensor<2xf32>) {
  mtp.backward () {
    mtp.yield %x, %y : tensor<2xf32>, tensor<2xf32>
  }
  mtp.yield
}
}
