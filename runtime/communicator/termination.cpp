//===- termination.cpp - Whether this process was told to end -------------===//

#include "runtime/communicator/termination.h"

#include <csignal>

#include "runtime/communicator/communicator.h"

namespace mtplan::runtime {

namespace {

volatile std::sig_atomic_t terminated = 0, asked = 0;

void listenTo(int number, void (*handler)(int), int flags) {
  struct sigaction before = {};
  if (sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL)
    return;
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | flags;
  sigaction(number, &action, nullptr);
}

} // namespace

void listenForTermination() {
  listenTo(
      SIGTERM, [](int) { terminated = 1; }, 0);
}

void keepTermination() {
  listenTo(
      SIGTERM,
      [](int) {
        terminated = 1;
        asked = 1;
      },
      SA_RESETHAND);
  // What mpirun hands on to its processes.
  listenTo(
      SIGUSR1, [](int) { asked = 1; }, 0);
}

bool isTerminated() { return terminated != 0; }
bool terminationAsked() { return asked != 0; }

} // namespace mtplan::runtime
