//===- run_process.cpp - Runs mtrun as processes --------------------------===//

#include "tests/executable/run_process.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/tools/command_testing.h"
#include "tools/run/run_command.h"

namespace mtplan {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto kMostToWrite = std::chrono::minutes(2);
constexpr auto kMostToEnd = std::chrono::minutes(3);

// Returns the contents of /proc/<process>/<name>; "" if the process ends before
// or during the read, in which case the stream throws.
std::string toldOf(const std::string &process, const char *name) {
  try {
    return contentOf("/proc/" + process + "/" + name);
  } catch (const std::ios_base::failure &) {
    return "";
  }
}

// Returns a field of /proc/<process>/stat, numbered as in proc(5); -1 if the
// process has ended. The field must come after the name, which is field 2.
long statOf(const std::string &process, int field) {
  const std::string text = toldOf(process, "stat");
  const std::size_t name = text.rfind(')');
  if (name == std::string::npos)
    return -1;
  std::istringstream rest(text.substr(name + 2));
  std::string word;
  for (int i = 3; i <= field; ++i)
    rest >> word;
  return std::strtol(word.c_str(), nullptr, 10);
}

// Counts writes that end in the middle of a line. The output of another process
// could be inserted there.
class WholeLines : public std::stringbuf {
public:
  int halves = 0;

protected:
  int sync() override {
    const std::string_view text = view();
    halves += !text.empty() && text.back() != '\n' ? 1 : 0;
    return 0;
  }
};

bool isDead(const std::string &process) {
  const std::string text = toldOf(process, "stat");
  const std::size_t name = text.rfind(')');
  return name == std::string::npos || text[name + 2] == 'Z';
}

} // namespace

std::vector<std::string> Ended::lines(const std::string &start) const {
  std::vector<std::string> found;
  std::istringstream all(out);
  for (std::string line; std::getline(all, line);)
    if (line.starts_with(start))
      found.push_back(line.substr(start.size()));
  return found;
}

std::string Ended::lastMessage(int rank) const {
  const auto all = lines("rank " + std::to_string(rank) + ": ");
  return all.empty() ? "" : all.back();
}

RunProcess::RunProcess(const std::vector<std::string> &command) {
  static std::atomic<int> count = 0;
  file = (std::filesystem::temp_directory_path() /
          ("mtrun-out-" + std::to_string(getpid()) + "-" +
           std::to_string(count++)))
             .string();
  std::vector<char *> words;
  words.reserve(command.size() + 1);
  for (const std::string &word : command)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  session = fork();
  if (session < 0) // kill(-1) would signal every process
    throw std::system_error(errno, std::generic_category(), "fork");
  if (session != 0)
    return;
  setsid();
  ::signal(SIGINT, SIG_DFL); // a shell may start it with the signal ignored
  const int out = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  // An mtrun with sanitizers would report leaks of MPI.
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  execvp(words[0], words.data());
  _exit(127);
}

RunProcess::~RunProcess() {
  for (pid_t process : left())
    kill(process, SIGKILL);
  if (!ended) {
    kill(session, SIGKILL);
    waitpid(session, &status, 0);
  }
  std::filesystem::remove(file);
}

std::string RunProcess::written() const { return contentOf(file); }

bool RunProcess::hasEnded() {
  if (!ended && waitpid(session, &status, WNOHANG) == session)
    ended = true;
  return ended;
}

bool RunProcess::writes(const std::string &text) {
  const auto until = Clock::now() + kMostToWrite;
  while (written().find(text) == std::string::npos) {
    if (hasEnded() || Clock::now() > until)
      return written().find(text) != std::string::npos;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

pid_t RunProcess::processOf(int rank) const {
  const std::string number = std::to_string(rank);
  for (pid_t process : left()) {
    std::istringstream all(toldOf(std::to_string(process), "environ"));
    for (std::string one; std::getline(all, one, '\0');)
      if (one == "OMPI_COMM_WORLD_RANK=" + number || one == "RANK=" + number)
        return process;
  }
  return -1;
}

void RunProcess::signal(int number) const { kill(session, number); }

void RunProcess::signalGroup(int number) const {
  kill(-session, number);
  kill(session, number);
}

Ended RunProcess::end() {
  const auto until = Clock::now() + kMostToEnd;
  while (!hasEnded() && Clock::now() < until)
    std::this_thread::sleep_for(milliseconds(5));
  if (!ended)
    return {-1, written() + "\nhad to be killed"};
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          written()};
}

std::vector<pid_t> RunProcess::left() const {
  std::vector<pid_t> found;
  for (const auto &entry : std::filesystem::directory_iterator(
           "/proc",
           std::filesystem::directory_options::skip_permission_denied)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        statOf(name, 6) == session && !isDead(name))
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

bool RunProcess::isEmptied() const {
  const auto until = Clock::now() + std::chrono::seconds(30);
  while (!left().empty() && Clock::now() < until)
    std::this_thread::sleep_for(milliseconds(10));
  return left().empty();
}

std::vector<std::string> underMpi(int ranks,
                                  const std::vector<std::string> &arguments) {
  if (std::string(MTPLAN_WITH_MPI).empty() ||
      std::system("command -v mpirun >/dev/null 2>&1") != 0)
    return {};
  // While other tests run, a rank may not get a core within the second that
  // Open MPI leaves between SIGTERM and SIGKILL.
  std::vector<std::string> command{"mpirun",
                                   "--oversubscribe",
                                   "--allow-run-as-root",
                                   "--quiet",
                                   "--mca",
                                   "odls_base_sigkill_timeout",
                                   "3",
                                   "-np",
                                   std::to_string(ranks),
                                   MTPLAN_MTRUN};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

namespace {

// Returns a command that starts `ranks` processes. In the shell script, $0 is
// the number of ranks. In `variables`, $r is the rank.
std::vector<std::string> byShell(int ranks, const std::string &variables,
                                 const std::vector<std::string> &arguments) {
  const std::string script = "pids=; trap 'kill -TERM $pids' TERM; r=0\n"
                             "while [ $r -lt $0 ]; do\n"
                             "  env " +
                             variables +
                             " \"$@\" & pids=\"$pids $!\"; r=$((r + 1))\n"
                             "done; status=0\n"
                             "for p in $pids; do\n"
                             "  wait $p; ended=$?\n"
                             "  while kill -0 $p 2>/dev/null; do\n"
                             // A signal interrupted `wait`.
                             "    wait $p; ended=$?\n"
                             "  done\n"
                             "  [ $ended -eq 0 ] || status=1\n"
                             "done; exit $status";
  std::vector<std::string> command{"sh", "-c", script, std::to_string(ranks),
                                   MTPLAN_MTRUN};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::string numberOfRun() {
  static std::atomic<int> count = 0;
  return std::to_string(getpid()) + "0" + std::to_string(count++);
}

} // namespace

std::vector<std::string>
underTorchrun(int ranks, const std::vector<std::string> &arguments) {
  const std::string all = std::to_string(ranks);
  return byShell(ranks,
                 "RANK=$r LOCAL_RANK=$r GROUP_RANK=0 WORLD_SIZE=" + all +
                     " LOCAL_WORLD_SIZE=" + all +
                     " MASTER_ADDR=localhost MASTER_PORT=29500"
                     " TORCHELASTIC_RESTART_COUNT=0"
                     " TORCHELASTIC_USE_AGENT_STORE=True"
                     " TORCHELASTIC_RUN_ID=" +
                     numberOfRun(),
                 arguments);
}

std::vector<std::string> underSrun(int ranks,
                                   const std::vector<std::string> &arguments) {
  const std::string all = std::to_string(ranks);
  return byShell(ranks,
                 "SLURM_PROCID=$r SLURM_LOCALID=$r SLURM_NODEID=0"
                 " SLURM_STEP_NUM_TASKS=" +
                     all + " SLURM_STEP_TASKS_PER_NODE=" + all +
                     " SLURM_STEP_NODELIST=localhost SLURM_STEP_ID=0"
                     " SLURM_JOB_ID=" +
                     numberOfRun(),
                 arguments);
}

Ran runHere(const std::vector<std::string> &arguments) {
  std::ostringstream out;
  WholeLines lines;
  std::ostream err(&lines);
  err << std::unitbuf; // like std::cerr
  Ran ran;
  ran.code = tools::runTraining(arguments, out, err);
  ran.out = out.str();
  ran.err = lines.str();
  EXPECT_EQ(lines.halves, 0) << ran.err;
  return ran;
}

std::string compileExample(const std::string &model, const std::string &folder,
                           std::vector<std::string> flags) {
  std::vector<std::string> arguments{
      model.ends_with(".json") ? model : tools::examplePath(model),
      "--global-batch",
      "8",
      "--micro-batch",
      "2",
      "-o",
      folder};
  if (std::ranges::find(flags, "--hardware") == flags.end())
    arguments.insert(arguments.end(), {"--hardware", "cpu"});
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return tools::Ran(tools::plain(arguments)).err;
}

std::string contentOf(const std::string &file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> linesOf(const std::string &file) {
  std::vector<std::string> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

std::vector<std::string> numbersOf(const std::string &metrics) {
  std::vector<std::string> lines = linesOf(metrics);
  for (std::string &line : lines)
    line.resize(std::min(line.size(), line.find(", \"skipped\"")));
  return lines;
}

} // namespace mtplan
