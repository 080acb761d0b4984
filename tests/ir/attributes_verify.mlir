// RUN: mtplan-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{axis "tp" needs at least 1 rank, got 0}}
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 0>} {}

// -----

// expected-error @below {{has 2^31 ranks or more: 65536 before axis "tp", which has 32768}}
module attributes {mtp.mesh = #mtp.mesh<"dp" = 65536, "tp" = 32768>} {}

// -----

// expected-error @below {{names axis "dp" twice}}
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "dp" = 4>} {}

// -----

// expected-error @below {{needs axis names, got 3}}
module attributes {test.layout = #mtp.layout<[[3]]>} {}

// -----

// expected-error @below {{names axis "dp" twice}}
module attributes {test.layout = #mtp.layout<[["dp"], ["dp"]]>} {}

// -----

// expected-error @below {{names axis "dp" twice}}
module attributes {test.layout = #mtp.layout<[["dp"], []], partial = ["dp"]>} {}

// -----

// expected-error @below {{is a maximum over no axis}}
module attributes {test.layout = #mtp.layout<[[]], partial = [], max>} {}

// -----

// expected-error @below {{names axis "tp" twice}}
module attributes {test.strategy = #mtp.strategy<"tp" = "b", "tp" = "s">} {}
