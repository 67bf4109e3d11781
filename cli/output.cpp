#include "cli/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <system_error>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus::cli {
namespace {

[[noreturn]] void fail(const std::string& file, int code) {
  throw SystemError(fmt::format("{}: the file could not be written: {}", printable(file),
                                std::generic_category().message(code)));
}

/// A new file beside the target, removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : target_(target), path_(target + ".XXXXXX") {
    descriptor_ = mkstemp(path_.data());
    if (descriptor_ < 0) fail(target_, errno);
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!path_.empty()) unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(target_, errno);
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void rename() {
    const mode_t mask = umask(0);  // mkstemp gives 0600 whatever the mask says
    umask(mask);
    if (fchmod(descriptor_, 0666 & ~mask) != 0 || fsync(descriptor_) != 0) fail(target_, errno);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, errno);
    path_.clear();
  }

 private:
  std::string target_, path_;
  int descriptor_ = -1;
};

/// A file to add to, which nobody else adds to meanwhile.
class AppendedFile {
 public:
  explicit AppendedFile(const std::string& file)
      : file_(file), descriptor_(open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail(file_, errno);
    struct stat state {};
    if (flock(descriptor_, LOCK_EX) != 0 || fstat(descriptor_, &state) != 0) {
      const int code = errno;
      close(descriptor_);
      fail(file_, code);
    }
    size_ = state.st_size;
  }
  ~AppendedFile() { close(descriptor_); }
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  bool ends_with_a_line() const {
    char last = 0;
    return size_ == 0 || (pread(descriptor_, &last, 1, size_ - 1) == 1 && last == '\n');
  }

  void append(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int code = errno;
        static_cast<void>(ftruncate(descriptor_, size_) == 0);
        fail(file_, code);
      }
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    if (fsync(descriptor_) != 0) fail(file_, errno);
  }

 private:
  std::string file_;
  int descriptor_;
  off_t size_ = 0;
};

void refuse_other_than_file(const std::string& file, const char* option, const char* allowed) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(file, ignored);
  if (file == "-" || (there && !std::filesystem::is_regular_file(file, ignored)))
    throw InputError({option, 0, ""}, fmt::format("'{}'", printable(file)), allowed);
}

}  // namespace

void print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw SystemError("standard output: the text could not be written");
  }
}

void write_output(const std::string& file, const std::string& text) {
  if (file == "-") {
    print(text);
    return;
  }
  refuse_other_than_file(file, "-o", "a regular file, or -");
  TemporaryFile temporary(file);
  temporary.write(text);
  temporary.rename();
}

void append_lines(const std::string& file, const std::string& lines) {
  refuse_other_than_file(file, "--record", "a regular file");
  AppendedFile appended(file);
  if (!appended.ends_with_a_line())
    throw InputError({"--record", 0, ""}, fmt::format("'{}', whose last line has no end", printable(file)),
                     "a file of complete lines");
  appended.append(lines);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

void write_pieces(const std::string& file,
                  const std::function<void(const std::function<void(std::string_view)>&)>& produce) {
  refuse_other_than_file(file, "--trace", "a regular file");
  TemporaryFile temporary(file);
  produce([&temporary](std::string_view piece) { temporary.write(piece); });
  temporary.rename();
}

}  // namespace isthmus::cli
