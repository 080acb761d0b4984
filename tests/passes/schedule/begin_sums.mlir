// RUN: mtplan-opt --mtp-begin-sums --split-input-file %s > %t
// RUN: FileCheck %s < %t
// RUN: mtplan-opt --mtp-begin-sums --split-input-file %t | diff - %t
// RUN: mtplan-opt --mtp-begin-sums=sums-per-use --split-input-file %s | FileCheck %s --check-prefix=USE

// Micro-batch 1 runs backward first. The second mtp.accumulate always adds.
// CHECK-LABEL: mtp.segment @h
// CHECK: mtp.accumulate "h.*.w", %{{.+}} {mtp.first_term = array<i64: 1>}
// CHECK-NEXT: mtp.accumulate "h.*.w", %{{[a-z0-9]+}} :
module attributes {mtp.tasks = [array<i64: 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0>]} {
  mtp.segment @in () {
    %x = mtp.input "x" dims ["batch"] : tensor<4xf32>
    mtp.backward (%dx : tensor<4xf32>) {
      mtp.yield
    }
    mtp.yield %x : tensor<4xf32>
  }
  mtp.segment @h repeat 2 (%x : tensor<4xf32>) {
    %w = mtp.parameter "h.*.w" : tensor<4xf32>
    mtp.backward (%dx : tensor<4xf32>) {
      mtp.accumulate "h.*.w", %dx : tensor<4xf32>
      mtp.accumulate "h.*.w", %x : tensor<4xf32>
      mtp.yield %dx : tensor<4xf32>
    }
    mtp.yield %x : tensor<4xf32>
  }
}

// -----

// All layers add to one sum, whose first term is that of the last layer, 7.
// CHECK-LABEL: mtp.segment @shared
// CHECK: mtp.accumulate "w", %{{.+}} {mtp.first_term = array<i64: 0, 7>}
module attributes {mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @in () {
    %x = mtp.input "x" dims ["batch"] : tensor<4xf32>
    mtp.backward (%dx : tensor<4xf32>) {
      mtp.yield
    }
    mtp.yield %x : tensor<4xf32>
  }
  mtp.segment @shared repeat 2 first 6 (%x : tensor<4xf32>) {
    %w = mtp.parameter "w" : tensor<4xf32>
    mtp.backward (%dx : tensor<4xf32>) {
      mtp.accumulate "w", %dx : tensor<4xf32>
      mtp.yield %dx : tensor<4xf32>
    }
    mtp.yield %x : tensor<4xf32>
  }
}

// -----

// The head, whose backward runs first, has the first term of a tied weight;
// with one sum per use, each segment has the first term of its own.
// CHECK-LABEL: mtp.segment @embed
// CHECK: mtp.accumulate "w", %{{[a-z0-9]+}} :
// CHECK-LABEL: mtp.segment @head
// CHECK: mtp.accumulate "w", %{{.+}} {mtp.first_term = array<i64: 0>}
// USE-LABEL: mtp.segment @embed
// USE: mtp.accumulate "w", %{{.+}} {mtp.first_term = array<i64: 0>}
// USE-LABEL: mtp.segment @head
// USE: mtp.accumulate "w", %{{.+}} {mtp.first_term = array<i64: 0>, mtp.own_sum}
module attributes {mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @embed () {
    %w = mtp.parameter "w" : tensor<4xf32>
    mtp.backward (%dx : tensor<4xf32>) {
      mtp.accumulate "w", %dx : tensor<4xf32>
      mtp.yield
    }
    mtp.yield %w : tensor<4xf32>
  }
  mtp.segment @head (%x : tensor<4xf32>) {
    %w = mtp.parameter "w" : tensor<4xf32>
    mtp.backward () {
      mtp.accumulate "w", %w : tensor<4xf32>
      mtp.yield %w : tensor<4xf32>
    }
    mtp.yield
  }
}
